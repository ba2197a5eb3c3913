"""The level: an integer on the bus that says which decisions, state and records may be written.

As with Kafka's ``metadata.version``, an operator raises it once every process supports it (docs/running.md).
"""

# Of a process that is not of isrflow, as a real broker.
NO_LEVEL = 0
# What a new bus begins with.
FIRST_LEVEL = 1
# The highest level that this release supports. It supports all below it too.
NEWEST_LEVEL = 2
# The level with which a shadow begins (``state.shadow``).
SHADOW_LEVEL = 2


def told(level: int) -> str:
    """Return the message that this release does not support a level."""
    return f"the bus is at level {level}, and this isrflow supports {NEWEST_LEVEL} at most: start a newer release"
