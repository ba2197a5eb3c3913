"""The broker's side of the bus: its events to the engine, and the engine's decisions."""
