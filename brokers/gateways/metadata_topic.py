"""The topic under whose name brokers keep the metadata log, so that no other topic may have it."""

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
