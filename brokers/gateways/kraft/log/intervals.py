"""The intervals of what makes a gateway's next start short: snapshots, and notes of events without records."""

# The default of metadata.log.max.record.bytes.between.snapshots; Kafka's is 20 MiB.
SNAPSHOT_INTERVAL_BYTES = 8 * 1024 * 1024
# At a start, at most this many events without records are read again.
NOTED_EVERY_EVENTS = 1_000
