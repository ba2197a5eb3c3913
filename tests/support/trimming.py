"""Remove old events from a bus, as retention does."""

from bus.interface import Bus


def trim(bus: Bus, retain: int) -> int:
    """Remove a slice of the events before the newest ``retain``. Return how much was removed."""
    return bus.forget(bus.last_seq() - retain)
