"""A gateway to brokers of Kafka 3.9 in ZooKeeper mode, which obey LeaderAndIsr requests."""
