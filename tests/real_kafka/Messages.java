import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines of "class version hex", and writes what Kafka's own class makes of the bytes: them again, or an error. */
public class Messages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(again(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2])));
        }
    }

    private static String again(String name, short version, byte[] bytes) {
        try {
            Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
            ByteBuffer in = ByteBuffer.wrap(bytes);
            message.read(new ByteBufferAccessor(in), version);
            if (in.hasRemaining()) {
                return "error: " + in.remaining() + " bytes are left over";
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(out), cache, version);
            return HexFormat.of().formatHex(out.array());
        } catch (Throwable error) {
            return "error: " + error;
        }
    }
}
