"""The logs of replicas on disk: record batches as Kafka stores them, in segments."""
