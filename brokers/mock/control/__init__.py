"""The broker's side of the bus: what it tells the engine, and how it hears the decisions."""
