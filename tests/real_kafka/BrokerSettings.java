// Print the settings of brokers with their types and defaults, then the type of each name on standard input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Objects;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import scala.Option;

public class BrokerSettings {
    public static void main(String[] arguments) throws Exception {
        for (ConfigDef.ConfigKey key : KafkaConfig.configDef().configKeys().values()) {
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            System.out.println(key.name + "=" + key.type + "=" + Objects.requireNonNullElse(value, ""));
        }
        System.out.println();
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            Option<ConfigDef.Type> type = KafkaConfig.configType(name);
            System.out.println(type.isEmpty() ? "UNKNOWN" : type.get().toString());
        }
    }
}
