"""A replication control plane for Kafka as a Spark Structured Streaming job."""

__version__ = "0.1.0"
