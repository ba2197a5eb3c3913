"""The metadata log on disk: batches as brokers fetch them, what decisions they came from, and snapshots."""
