"""The level: an integer on the bus that says which decisions, state and records may be written.

As with Kafka's ``metadata.version``, an operator raises it once every process supports it (docs/running.md).
"""

# The highest level that this release supports. It supports all below it too.
NEWEST_LEVEL = 1
