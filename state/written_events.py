"""What a gateway finds that a broker wrote into ZooKeeper itself."""

from typing import Literal

from state.event import Event
from state.limits import Epoch, Id, Ids, Name, Offset, Text


class IsrWritten(Event, frozen=True, kw_only=True, tag="isr_written"):
    """A leader wrote its ISR, as brokers do with an ``inter.broker.protocol.version`` below 2.7.

    It acts on the ISR already, so the event says what is so, and requests nothing.
    """

    topic: Name
    partition: Id
    # The leader that wrote, and its leader epoch. The engine may have decided on a later one that no broker knows yet.
    broker: Id
    leader_epoch: Epoch
    # The partition epoch that the gateway knows.
    partition_epoch: Epoch
    isr: Ids
    leader_recovery_state: Literal["RECOVERED", "RECOVERING"] = "RECOVERED"
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None
    # The transaction of ZooKeeper that wrote it. An incarnation of a broker is the one that made its znode.
    zxid: Offset | None = None
