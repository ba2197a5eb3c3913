"""Random events about the logs of crashed brokers."""

from state.cluster import State
from tests.support.random_places import TOPICS, Fields, broker_at, epoch_of, of_replica, some_partition


def _log(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    """Report the log of a replica, mostly of a partition that has no leader."""
    some = some_partition(state, a)
    for place in range(12):
        found = some_partition(state, a + place)
        if found is not None and found[1].leader < 0 and c < 10:
            some, a = found, a + place
            break
    broker = some[1].replicas[b % len(some[1].replicas)] if some and b < 11 else broker_at(b)
    return "replica_log", of_replica(state, a) | {
        "broker": broker,
        "broker_epoch": epoch_of(state, broker, b),
        "last_written_epoch": max(-1, some[1].leader_epoch - c % 3) if some else 0,
        "log_end_offset": 3 * c + b,
        "high_watermark": b if c == 9 else 0,
        "request_id": a if c % 2 else None,
    }


def _strategy(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    value = (None, "None", "Balanced", "Aggressive", "Balanced", "whatever")[c % 6]
    entity = {"entity": "topic", "name": TOPICS[a % 5]} if b % 2 else {"entity": "cluster"}
    return "alter_config", entity | {"config": {"unclean.recovery.strategy": value, "unclean.recovery.timeout.ms": 900}}


def _raise(state: State, a: int, b: int, c: int) -> tuple[str, Fields]:
    return "raise_level", {"level": 2}


RECOVERIES = {"log": _log, "strategy": _strategy, "raise": _raise}
