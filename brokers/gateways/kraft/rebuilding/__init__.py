"""Rebuild a gateway's log that is lost or damaged, from another gateway or from brokers' copies."""
