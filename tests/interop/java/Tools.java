import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools inside this process, one after the other: a JVM of its own for each would take longer
 * than its work. What a tool prints and the code it ends with are its answer.
 */
final class Tools {
    /** How a tool ends that asks for the end of the process. */
    private static final class Ended extends Error {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Goes where it is told to; a stream that a class has kept for ever is therefore no trouble. */
    private static final class Switch extends OutputStream {
        private volatile OutputStream target;

        Switch(OutputStream target) {
            this.target = target;
        }

        @Override
        public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) {
            try {
                target.write(bytes, from, length);
                target.flush();
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private final Switch out = new Switch(OutputStream.nullOutputStream());
    private final Switch err = new Switch(System.err);
    private final List<Runnable> hooks = new ArrayList<>();
    private Integer code;

    Tools() {
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        // The first code counts: many tools catch what is thrown here, and ask again with another code.
        Exit.setExitProcedure(this::end);
        Exit.setHaltProcedure(this::end);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
    }

    ObjectNode run(String mainClass, String[] arguments, String typed) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complaints = new ByteArrayOutputStream();
        InputStream input = System.in;
        OutputStream errors = err.target;
        code = null;
        out.target = printed;
        err.target = complaints;
        System.setIn(new ByteArrayInputStream(typed.getBytes(StandardCharsets.UTF_8)));
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Ended)) {
                e.getCause().printStackTrace();
                code = code == null ? 1 : code;
            }
        } finally {
            // As at the end of a process.
            hooks.forEach(Runnable::run);
            hooks.clear();
            System.setIn(input);
            out.target = OutputStream.nullOutputStream();
            err.target = errors;
        }
        return JSON.createObjectNode().put("code", code == null ? 0 : code)
            .put("out", printed.toString(StandardCharsets.UTF_8)).put("err", complaints.toString(StandardCharsets.UTF_8));
    }

    private void end(int status, String message) {
        code = code == null ? status : code;
        throw new Ended();
    }
}
