"""The metadata log on disk: batches as brokers fetch them, the decisions they came from, and snapshots."""
