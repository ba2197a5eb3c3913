"""What brokers are told: from decisions to requests, and from answers to reports."""
