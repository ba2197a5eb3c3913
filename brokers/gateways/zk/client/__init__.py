"""A client of ZooKeeper: a session, its connection, and writes in transactions."""
