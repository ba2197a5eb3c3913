"""Wait until what was committed can be read."""

from bus.interface import Bus
from tests.support.waiting import wait_until


def readable(through: int, *buses: Bus) -> None:
    """Wait until a commit can be read. On Kafka the mark, the decisions and the state each take a moment."""
    for bus in buses:
        wait_until(lambda bus=bus: bus.decided_seq() == bus.image().seq == through, f"seq {through} to be readable")
