"""The event about an ISR that a broker wrote into ZooKeeper itself."""

from typing import Literal

from state.event import Event
from state.limits import Epoch, Id, Ids, Name, Offset, Text


class IsrWritten(Event, frozen=True, kw_only=True, tag="isr_written"):
    """A leader wrote its ISR, as brokers do with an ``inter.broker.protocol.version`` below 2.7.

    The leader already acts on the ISR, so the event states a fact and requests nothing.
    """

    topic: Name
    partition: Id
    # The leader that wrote, and its leader epoch. The engine may have decided on a later one that no broker knows.
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
