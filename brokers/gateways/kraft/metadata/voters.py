"""The voters of the quorum as control records, which brokers read before they know any controller (KIP-853).

A broker stops if a VotersRecord adds more than one voter to the record before it, or leaves out more than one
(``VoterSet.hasOverlappingMajority``). So a larger change is written in several records, one step each.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from brokers.gateways.kraft.metadata.uuids import uuid_of
from brokers.wire.metadata.record_frame import Record
from state.entity import VOTERS, Entity
from state.features import KRAFT_LEVELS
from state.voter_endpoints import VoterEndpoint, endpoints_of, text_of


def directory_id_of(voter: int) -> str:
    """Return the id that stands for a gateway's log directory. It stays the same when the log is rebuilt."""
    return uuid_of(f"voter {voter}")


def voter_records(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Record]:
    """Yield the control records that turn the voters ``before``, perhaps none, into the voters ``after``."""
    if not before and after:
        yield Record("KRaftVersionRecord", 0, {"Version": 0, "KRaftVersion": KRAFT_LEVELS.high})
        yield _record(after)
        return
    held = dict(before)
    came, gone = _in_order(after.keys() - before.keys()), _in_order(before.keys() - after.keys())
    for new, former in zip_longest(came[1:], gone[1:]):
        if new is not None:
            held[new] = after[new]
        if former is not None:
            del held[former]
        yield _record(held)
    if before != after:
        yield _record(after)


def entity_of(values: Mapping[str, Any]) -> Entity:
    """Read the voters out of a VotersRecord."""
    voters = {
        str(voter["VoterId"]): text_of(
            VoterEndpoint(one["Name"], one["Host"], one["Port"]) for one in voter["Endpoints"]
        )
        for voter in values["Voters"]
    }
    return Entity(entity_type=VOTERS, names={}, values=dict(sorted(voters.items())))


def _in_order(voters: set[str]) -> Sequence[str]:
    return sorted(voters, key=int)


def _record(voters: Mapping[str, str]) -> Record:
    written = [_voter(int(voter), voters[voter]) for voter in _in_order({*voters})]
    return Record("VotersRecord", 0, {"Version": 0, "Voters": written})


def _voter(voter: int, endpoints: str) -> dict[str, Any]:
    return {
        "VoterId": voter,
        "VoterDirectoryId": directory_id_of(voter),
        "Endpoints": [{"Name": one.listener, "Host": one.host, "Port": one.port} for one in endpoints_of(endpoints)],
        "KRaftVersionFeature": {"MinSupportedVersion": KRAFT_LEVELS.low, "MaxSupportedVersion": KRAFT_LEVELS.high},
    }
