"""Mock brokers: processes that replicate logs over the Kafka protocol and obey the engine's decisions."""
