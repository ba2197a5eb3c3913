"""The common parts of every process of a broker or gateway: its settings, its metrics, and one way to end."""
