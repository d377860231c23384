import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Streams of random batches that go on until the broker is gone. A stream names its partition, its producer, a
 * seed, and whether every record needs a key; with a transactional producer it commits or aborts after every few batches.
 */
final class Load {
    private static final int ENDED = -1;
    private final List<Integer> batches = new ArrayList<>();

    /** Sends until something fails: the end of the broker is the end of the stream. */
    void run(JsonNode stream, KafkaProducer<byte[], byte[]> producer, TopicPartition tp) {
        Random random = new Random(stream.get("seed").asLong());
        long pauseMs = stream.path("pause_ms").asLong(0);
        boolean keyed = stream.get("keyed").asBoolean();
        boolean transactional = stream.get("producer").has("transactional.id");
        int number = begun();
        try {
            while (true) {
                if (transactional) {
                    producer.beginTransaction();
                }
                for (int left = 1 + random.nextInt(3); left > 0; left--) {
                    sendBatch(producer, tp, random, keyed);
                    counted(number);
                    Thread.sleep(pauseMs);
                }
                if (transactional && random.nextInt(3) == 0) {
                    producer.abortTransaction();
                } else if (transactional) {
                    producer.commitTransaction();
                }
            }
        } catch (Exception e) {
            e.printStackTrace();
            ended(number);
        }
    }

    /** Waits until each of so many streams has written so many batches more. */
    synchronized void await(int streams, int more) throws InterruptedException {
        while (batches.size() < streams) {
            wait();
        }
        List<Integer> before = new ArrayList<>(batches);
        for (int number = 0; number < streams; number++) {
            while (batches.get(number) < before.get(number) + more) {
                if (batches.get(number) == ENDED) {
                    throw new IllegalStateException("stream " + number + " has ended");
                }
                wait();
            }
        }
    }

    private synchronized int begun() {
        batches.add(0);
        notifyAll();
        return batches.size() - 1;
    }

    private synchronized void counted(int number) {
        batches.set(number, batches.get(number) + 1);
        notifyAll();
    }

    private synchronized void ended(int number) {
        batches.set(number, ENDED);
        notifyAll();
    }

    private static void sendBatch(
            KafkaProducer<byte[], byte[]> producer, TopicPartition tp, Random random, boolean keyed) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int left = 1 + random.nextInt(20); left > 0; left--) {
            List<Header> headers = new ArrayList<>();
            if (random.nextInt(4) == 0) {
                headers.add(new RecordHeader("seed", random.nextBoolean() ? null : bytes(random, 10)));
            }
            byte[] key = !keyed && random.nextInt(5) == 0 ? null : ("key-" + random.nextInt(100)).getBytes();
            byte[] value = random.nextInt(10) == 0 ? null : bytes(random, 200);
            sent.add(producer.send(new ProducerRecord<>(tp.topic(), tp.partition(), key, value, headers)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    /** Bytes of few values, so that they compress. */
    private static byte[] bytes(Random random, int limit) {
        byte[] bytes = new byte[random.nextInt(limit)];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) ('a' + random.nextInt(4));
        }
        return bytes;
    }
}
