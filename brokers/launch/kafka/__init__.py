"""Real Kafka nodes as processes on this machine: formatted, started, stopped, and found again by their folder."""
