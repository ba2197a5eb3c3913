"""The fields of every event, and those that events of admins, of the engine and about a replica add."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from state.limits import Epoch, Id, Name, Text, TimeMs


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every event has."""

    time_ms: TimeMs
    # The answer repeats it.
    request_id: Text | int | None = None


class AdminEvent(Event, frozen=True, kw_only=True):
    """A request of an admin."""

    # An event that waits longer than this to be decided is answered as timed out, and not carried out.
    timeout_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None
    # The principal of the admin, in Kafka's form, if a gateway knows it.
    principal: Text | UnsetType | None = UNSET
    # The quorum epoch of a gateway that asks as the leader. Its request may follow from the metadata of this epoch.
    quorum_epoch: Epoch | UnsetType = UNSET


class EngineEvent(Event, frozen=True, kw_only=True):
    """An event that only the engine makes, with the controller epoch of its job."""

    controller_epoch: Epoch | None = None


class OfReplica(Event, frozen=True, kw_only=True):
    """What every event about a replica has."""

    topic: Name
    partition: Id
    broker: Id
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None
