import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

/** Reads files of the metadata log as a broker does, and writes the image after each batch that a broker would publish. */
public class Images {
    private static final FaultHandler FAULTS = (message, cause) -> new RuntimeException(message, cause);

    private MetadataImage image = MetadataImage.EMPTY;
    private final MetadataBatchLoader loader =
        new MetadataBatchLoader(new LogContext(), Time.SYSTEM, FAULTS, (delta, next, manifest) -> publish(next));

    public static void main(String[] files) throws Exception {
        Images images = new Images();
        images.loader.resetToImage(MetadataImage.EMPTY);
        for (String file : files) {
            images.read(new File(file));
        }
    }

    private void read(File file) throws Exception {
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                if (!batch.isControlBatch()) {
                    loader.loadBatch(batchOf(batch), LeaderAndEpoch.UNKNOWN);
                    loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
                }
            }
        }
    }

    private Batch<ApiMessageAndVersion> batchOf(RecordBatch batch) {
        List<ApiMessageAndVersion> messages = new ArrayList<>();
        for (Record record : batch) {
            messages.add(new MetadataRecordSerde().read(new ByteBufferAccessor(record.value()), record.valueSize()));
        }
        return Batch.data(batch.baseOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), batch.sizeInBytes(), messages);
    }

    private void publish(MetadataImage next) {
        image = next;
        System.out.println((image.offset() + 1) + "|" + brokers() + "|" + partitions() + "|" + configs());
    }

    private String brokers() {
        Map<Integer, BrokerRegistration> sorted = new TreeMap<>(image.cluster().brokers());
        return sorted.values().stream()
            .map(b -> b.id() + ":" + b.epoch() + ":" + b.fenced() + ":" + (b.inControlledShutdown() && !b.fenced())
                + ":" + b.rack().orElse("") + ":" + b.directories().size())
            .collect(Collectors.joining(" "));
    }

    private String partitions() {
        Map<String, String> sorted = new TreeMap<>();
        for (TopicImage topic : image.topics().topicsByName().values()) {
            sorted.put(topic.name(), topic.name() + "=" + topic.id());
            topic.partitions().forEach((number, p) -> sorted.put(topic.name() + "-" + number, text(topic.name() + "-" + number, p)));
        }
        return String.join(" ", sorted.values());
    }

    private static String text(String name, PartitionRegistration p) {
        return name + ":" + p.leader + ":" + p.leaderEpoch + ":" + p.partitionEpoch + ":" + ids(p.isr) + ":" + ids(p.replicas)
            + ":" + ids(p.addingReplicas) + ":" + ids(p.removingReplicas) + ":" + p.leaderRecoveryState.value();
    }

    private static String ids(int[] ids) {
        return Arrays.stream(ids).mapToObj(Integer::toString).collect(Collectors.joining(","));
    }

    private String configs() {
        Map<String, String> sorted = new TreeMap<>();
        image.configs().resourceData().forEach((resource, config) -> config.data().forEach(
            (name, value) -> sorted.put(resource.type().id() + "/" + resource.name() + "/" + name, value)));
        return sorted.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).collect(Collectors.joining(" "));
    }
}
