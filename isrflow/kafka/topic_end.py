"""The end of a topic on Kafka. It never comes nearer, unless the topic is deleted or Kafka loses records."""

import time
from collections.abc import Callable

from isrflow.errors import BusError
from isrflow.kafka.address import Address

LOST_END_TIMEOUT_S = 5.0
_RETRY_PAUSE_S = 0.05


def await_end(
    address: Address,
    topic: str,
    least: int,
    end_of: Callable[[str], int],
    look_up: Callable[[str], object],
    *,
    timeout_s: float,
    was: str,
) -> int:
    """Return the end of a topic once it is at least ``least``, as it was before.

    ``look_up`` asks Kafka who leads the topic. Raises ``BusError`` if the topic stays shorter, and says how it ``was``.
    """
    deadline_s = time.monotonic() + timeout_s
    while (end := end_of(topic)) < least:
        # A broker that does not know yet that it has lost the topic's leadership answers with an older end.
        if time.monotonic() > deadline_s:
            raise lost_end(address, topic, f"ends at offset {end}, but {was}")
        time.sleep(_RETRY_PAUSE_S)
        look_up(topic)
    return end


def lost_end(address: Address, topic: str, sign: str) -> BusError:
    """Return the error that says by which ``sign`` a topic is known to have lost its end."""
    return BusError(
        f"bus {address}: {topic} {sign}: it was deleted and made again, or Kafka has lost its end. "
        "Restore the topic, or start a new bus under another prefix"
    )
