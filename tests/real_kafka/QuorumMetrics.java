import java.util.TreeMap;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Prints each number that a controller shows about the quorum and about itself: "object attribute value". */
public class QuorumMetrics {
    private static final String[] WANTED = {
        "kafka.controller:*", "kafka.server:type=raft-metrics", "kafka.server:type=MetadataLoader,*",
        "kafka.server:type=broker-metadata-metrics", "kafka.server:type=node-metrics"};

    public static void main(String[] arguments) throws Exception {
        var url = new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi");
        var found = new TreeMap<String, String>();
        try (var connector = JMXConnectorFactory.connect(url)) {
            var server = connector.getMBeanServerConnection();
            for (var wanted : WANTED) {
                for (var name : server.queryNames(new ObjectName(wanted), null)) {
                    for (var attribute : server.getMBeanInfo(name).getAttributes()) {
                        if (server.getAttribute(name, attribute.getName()) instanceof Number value) {
                            found.put(name + " " + attribute.getName(), value.toString());
                        }
                    }
                }
            }
        }
        found.forEach((name, value) -> System.out.println(name + "\t" + value));
    }
}
