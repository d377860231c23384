import java.util.HexFormat;
import org.apache.kafka.tools.api.Decoder;

/** Lets DumpLogSegments print keys and values without losing a byte; tools of Kafka 3.8 and later take it. */
public final class HexDecoder implements Decoder<String> {
    @Override
    public String fromBytes(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
