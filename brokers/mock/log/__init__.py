"""The log of one replica on disk: record batches as Kafka stores them, in segments."""
