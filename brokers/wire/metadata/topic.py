"""The topic as which brokers keep the metadata log. No other topic may have its name."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
# Where a node has its copy of the metadata log, in a log directory.
METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
