"""What every process of a broker or gateway has: its settings, its metrics, and one way to end."""
