import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients behind one process: reads one JSON command a line, answers one JSON object a line. Keys,
 * values and header values are base64. Only calls that exist from 2.8 to 4.2 are used.
 */
public final class KafkaOps {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long CONSUME_LIMIT_NANOS = 240_000_000_000L;

    private final String servers;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new ConcurrentHashMap<>();
    private final Load load = new Load();
    private final Tools tools = new Tools();
    private int streams;

    private KafkaOps(String servers) {
        this.servers = servers;
        this.admin = Admin.create(base());
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        KafkaOps ops = new KafkaOps(args[0]);
        String line;
        while ((line = commands.readLine()) != null) {
            ObjectNode answer;
            try {
                answer = ops.run(JSON.readTree(line));
            } catch (Exception e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                answer = JSON.createObjectNode().put("error", cause.toString())
                    .put("code", Errors.forException(cause).code());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        // An open transaction must stay open, so nothing is closed on the way out.
        Runtime.getRuntime().halt(0);
    }

    private ObjectNode run(JsonNode c) throws Exception {
        ObjectNode out = JSON.createObjectNode();
        switch (c.get("op").asText()) {
            case "ping":
                out.put("cluster", admin.describeCluster().clusterId().get());
                return out;
            case "topics":
                return topics(out);
            case "create":
                admin.createTopics(List.of(new NewTopic(c.get("topic").asText(), c.get("partitions").asInt(),
                    (short) 1).configs(strings(c.get("configs"))))).all().get();
                return out;
            case "delete":
                admin.deleteTopics(List.of(c.get("topic").asText())).all().get();
                return out;
            case "widen":
                admin.createPartitions(Map.of(c.get("topic").asText(),
                    NewPartitions.increaseTo(c.get("partitions").asInt()))).all().get();
                return out;
            case "configure":
                configure(c);
                return out;
            case "configs":
                return configs(c, out);
            case "log_dirs":
                return logDirs(c, out);
            case "move":
                TopicPartition moved = partition(c);
                admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(moved.topic(), moved.partition(),
                    c.get("broker").asInt()), c.get("log_dir").asText())).all().get();
                return out;
            case "tool":
                return tools.run(c.get("main").asText(), JSON.treeToValue(c.get("arguments"), String[].class),
                    c.get("typed").asText());
            case "delete_records":
                admin.deleteRecords(Map.of(partition(c), RecordsToDelete.beforeOffset(c.get("offset").asLong())))
                    .all().get();
                return out;
            case "produce":
                return produce(c, out);
            case "load":
                for (JsonNode stream : c.get("streams")) {
                    streams++;
                    Thread thread = new Thread(() -> load.run(stream, producer(stream), partition(stream)));
                    thread.setDaemon(true);
                    thread.start();
                }
                return out;
            case "await_load":
                load.await(streams, c.get("batches").asInt());
                return out;
            case "begin":
                producer(c).beginTransaction();
                return out;
            case "send_offset":
                producer(c).sendOffsetsToTransaction(committed(c),
                    new ConsumerGroupMetadata(c.get("group").asText()));
                return out;
            case "commit":
                producer(c).commitTransaction();
                return out;
            case "abort":
                producer(c).abortTransaction();
                return out;
            case "close":
                producers.remove(c.get("producer").toString()).close();
                return out;
            case "commit_offset":
                try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("group.id", c.get("group").asText()))) {
                    consumer.assign(List.of(partition(c)));
                    consumer.commitSync(committed(c));
                }
                return out;
            case "join_group":
                joinGroup(c);
                return out;
            case "consume":
                return consume(c, out);
            case "probe":
                return probe(c, out);
            case "times":
                return times(c, out);
            default:
                throw new IllegalArgumentException("unknown op " + c.get("op"));
        }
    }

    private Map<String, Object> base() {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", servers);
        return config;
    }

    private ObjectNode topics(ObjectNode out) throws Exception {
        Collection<String> names = admin.listTopics(
            new org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(true)).names().get();
        ObjectNode topics = out.putObject("topics");
        // values() was replaced by allTopicNames(); the newer name is missing in 2.8.
        for (String name : names) {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
                topics.put(name, consumer.partitionsFor(name).size());
            }
        }
        return out;
    }

    private void configure(JsonNode c) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        strings(c.get("configs")).forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(resource(c), changes)).all().get();
    }

    /** Every setting of a topic or broker: its value and where that comes from. */
    private ObjectNode configs(JsonNode c, ObjectNode out) throws Exception {
        ObjectNode configs = out.putObject("configs");
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource(c))).all().get().get(resource(c)).entries()) {
            configs.putArray(entry.name()).add(entry.value()).add(entry.source().name());
        }
        return out;
    }

    private static ConfigResource resource(JsonNode c) {
        return c.has("broker")
            ? new ConfigResource(ConfigResource.Type.BROKER, c.get("broker").asText())
            : new ConfigResource(ConfigResource.Type.TOPIC, c.get("topic").asText());
    }

    /** The bytes of a topic's partitions on one broker. */
    private ObjectNode logDirs(JsonNode c, ObjectNode out) throws Exception {
        ObjectNode sizes = out.putObject("sizes");
        int broker = c.get("broker").asInt();
        admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker).values().forEach(dir ->
            dir.replicaInfos().forEach((tp, info) -> {
                if (tp.topic().equals(c.get("topic").asText())) {
                    sizes.put(Integer.toString(tp.partition()), info.size());
                }
            }));
        return out;
    }

    /** Sends the records and flushes, so that one command is one batch as long as batch.size allows. */
    private ObjectNode produce(JsonNode c, ObjectNode out) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(c);
        TopicPartition tp = partition(c);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode r : c.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode h : r.path("headers")) {
                headers.add(new RecordHeader(h.get(0).asText(), bytes(h.get(1))));
            }
            Long timestamp = r.hasNonNull("timestamp") ? r.get("timestamp").asLong() : null;
            sent.add(producer.send(new ProducerRecord<>(tp.topic(), tp.partition(), timestamp, bytes(r.get("key")),
                bytes(r.get("value")), headers)));
        }
        producer.flush();
        ArrayNode offsets = out.putArray("offsets");
        for (Future<RecordMetadata> f : sent) {
            offsets.add(f.get().offset());
        }
        return out;
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode c) {
        JsonNode key = c.get("producer");
        return producers.computeIfAbsent(key.toString(), k -> {
            Map<String, Object> config = base();
            config.put("linger.ms", "100000");
            config.put("delivery.timeout.ms", "200000");
            config.put("batch.size", "100000");
            config.putAll(strings(key));
            KafkaProducer<byte[], byte[]> made =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
            if (key.has("transactional.id")) {
                made.initTransactions();
            }
            return made;
        });
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, String> more) {
        Map<String, Object> config = base();
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "none");
        // A fetch under way at the end of a partition would hold up close() for as long as it waits.
        config.put("fetch.max.wait.ms", "5");
        config.putAll(more);
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Joins a group as a member, reads something, commits and leaves. */
    private void joinGroup(JsonNode c) {
        Map<String, String> config = strings(c.get("consumer"));
        config.put("auto.offset.reset", "earliest");
        config.put("group.id", c.get("group").asText());
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(config)) {
            consumer.subscribe(List.of(c.get("topic").asText()));
            long limit = System.nanoTime() + CONSUME_LIMIT_NANOS;
            while (consumer.poll(POLL).isEmpty()) {
                if (System.nanoTime() > limit) {
                    throw new IllegalStateException("nothing came from " + c.get("topic").asText());
                }
            }
            consumer.commitSync();
        }
    }

    private ObjectNode consume(JsonNode c, ObjectNode out) {
        TopicPartition tp = partition(c);
        long limit = System.nanoTime() + CONSUME_LIMIT_NANOS;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("isolation.level", c.get("isolation").asText()))) {
            consumer.assign(Collections.singletonList(tp));
            while (!readAll(consumer, tp, limit, out)) {
                // Retention has taken what was to come next: once more, from where the log starts now.
            }
        }
        return out;
    }

    private static boolean readAll(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition tp, long limit, ObjectNode out) {
        List<TopicPartition> one = Collections.singletonList(tp);
        long start = consumer.beginningOffsets(one).get(tp);
        long end = consumer.endOffsets(one).get(tp);
        out.put("start", start).put("end", end);
        ArrayNode records = out.putArray("records");
        consumer.seek(tp, start);
        while (consumer.position(tp) < end) {
            if (System.nanoTime() > limit) {
                throw new IllegalStateException("stuck at " + consumer.position(tp) + " of " + end);
            }
            try {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(POLL)) {
                    records.add(describe(r));
                }
            } catch (OffsetOutOfRangeException e) {
                if (consumer.beginningOffsets(one).get(tp) <= consumer.position(tp)) {
                    throw e;
                }
                return false;
            }
        }
        return true;
    }

    /** The first record at or after each of the offsets; null where there is none before the end. */
    private ObjectNode probe(JsonNode c, ObjectNode out) {
        TopicPartition tp = partition(c);
        List<TopicPartition> one = Collections.singletonList(tp);
        ArrayNode answers = out.putArray("records");
        Map<String, String> config = Map.of("isolation.level", c.get("isolation").asText(), "max.poll.records", "1");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(config)) {
            consumer.assign(one);
            long end = consumer.endOffsets(one).get(tp);
            for (JsonNode offset : c.get("offsets")) {
                consumer.seek(tp, offset.asLong());
                ObjectNode found = null;
                long limit = System.nanoTime() + CONSUME_LIMIT_NANOS;
                while (found == null && consumer.position(tp) < end) {
                    if (System.nanoTime() > limit) {
                        throw new IllegalStateException("stuck at " + consumer.position(tp) + " of " + end);
                    }
                    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(POLL)) {
                        found = describe(r);
                    }
                }
                answers.add(found);
            }
        }
        return out;
    }

    private static ObjectNode describe(ConsumerRecord<byte[], byte[]> r) {
        ObjectNode d = JSON.createObjectNode();
        d.put("offset", r.offset()).put("timestamp", r.timestamp()).put("timestamp_type", r.timestampType().name);
        d.put("key", text(r.key())).put("value", text(r.value()));
        Optional<Integer> epoch = r.leaderEpoch();
        d.put("leader_epoch", epoch.orElse(null));
        ArrayNode headers = d.putArray("headers");
        for (Header h : r.headers()) {
            headers.addArray().add(h.key()).add(text(h.value()));
        }
        return d;
    }

    private ObjectNode times(JsonNode c, ObjectNode out) {
        TopicPartition tp = partition(c);
        ArrayNode answers = out.putArray("times");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
            for (JsonNode t : c.get("timestamps")) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(tp, t.asLong())).get(tp);
                ArrayNode answer = answers.addArray().add(t.asLong());
                answer.add(found == null ? null : (Long) found.offset());
                answer.add(found == null ? null : (Long) found.timestamp());
            }
        }
        return out;
    }

    private static TopicPartition partition(JsonNode c) {
        return new TopicPartition(c.get("topic").asText(), c.path("partition").asInt(0));
    }

    private static Map<TopicPartition, OffsetAndMetadata> committed(JsonNode c) {
        return Map.of(partition(c), new OffsetAndMetadata(c.get("offset").asLong(), c.path("metadata").asText("")));
    }

    private static Map<String, String> strings(JsonNode node) {
        Map<String, String> map = new HashMap<>();
        if (node != null) {
            node.fields().forEachRemaining(f -> map.put(f.getKey(), f.getValue().asText()));
        }
        return map;
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
