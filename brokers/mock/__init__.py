"""Mock brokers: processes that replicate logs over Kafka's protocol and carry out the engine's decisions."""
