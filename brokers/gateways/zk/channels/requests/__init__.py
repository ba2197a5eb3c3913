"""The way from decisions to requests, and from brokers' answers to reports."""
