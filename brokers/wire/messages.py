"""The common parts of all of Kafka's messages."""

FRAME_LENGTH_BYTES = 4


class WireError(Exception):
    """Some bytes are not a message of the protocol. The connection on which they came must be closed."""
