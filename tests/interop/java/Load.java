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
 * Streams of random batches that go on until the broker is gone. A stream names its partition, its producer and a
 * seed, and whether every record needs a key; with a transactional producer it commits or aborts after every few batches.
 */
final class Load {
    private int batches;
    private int running;

    /** Sends until something fails: the end of the broker is the end of the stream. */
    void run(JsonNode stream, KafkaProducer<byte[], byte[]> producer, TopicPartition tp) {
        Random random = new Random(stream.get("seed").asLong());
        boolean keyed = stream.get("keyed").asBoolean();
        boolean transactional = stream.get("producer").has("transactional.id");
        begun();
        try {
            while (true) {
                if (transactional) {
                    producer.beginTransaction();
                }
                for (int left = 1 + random.nextInt(3); left > 0; left--) {
                    sendBatch(producer, tp, random, keyed);
                    counted();
                }
                if (transactional && random.nextInt(3) == 0) {
                    producer.abortTransaction();
                } else if (transactional) {
                    producer.commitTransaction();
                }
            }
        } catch (Exception e) {
            ended();
        }
    }

    /** Waits until the streams have written so many batches more. */
    synchronized void await(int more) throws InterruptedException {
        int target = batches + more;
        while (batches < target) {
            if (batches > 0 && running == 0) {
                throw new IllegalStateException("the load has ended after " + batches + " batches");
            }
            wait();
        }
    }

    private synchronized void begun() {
        running++;
    }

    private synchronized void counted() {
        batches++;
        notifyAll();
    }

    private synchronized void ended() {
        running--;
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
