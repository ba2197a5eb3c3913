// Print the settings that a topic may have, then say of each line of standard input (key=value) whether Kafka takes it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.storage.internals.log.LogConfig;

public class TopicSettings {
    public static void main(String[] arguments) throws Exception {
        System.out.println(String.join(" ", LogConfig.configKeys().keySet()));
        // Some releases take a map, others Properties, which are one.
        Method validate = Arrays.stream(LogConfig.class.getMethods())
            .filter(method -> method.getName().equals("validate") && method.getParameterCount() == 1).findAny().get();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties properties = new Properties();
            properties.setProperty(line.substring(0, line.indexOf('=')), line.substring(line.indexOf('=') + 1));
            try {
                validate.invoke(null, properties);
                System.out.println("taken");
            } catch (InvocationTargetException refusal) {
                if (!(refusal.getCause() instanceof KafkaException)) {
                    throw refusal;
                }
                System.out.println("refused");
            }
        }
    }
}
