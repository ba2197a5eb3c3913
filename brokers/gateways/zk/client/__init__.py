"""ZooKeeper's client: a session, its connection, and writes in transactions."""
