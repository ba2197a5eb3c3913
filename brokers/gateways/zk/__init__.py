"""A gateway to brokers of Kafka 3.9 in ZooKeeper mode, which are led by LeaderAndIsr requests."""
