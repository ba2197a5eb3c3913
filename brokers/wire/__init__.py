"""The Kafka protocol over TCP, in both directions."""
