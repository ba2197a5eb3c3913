"""The gateway that poses as the KRaft controller quorum for unmodified Kafka brokers."""
