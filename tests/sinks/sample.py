"""The metrics of a controller that has taken over and committed one batch."""

import json
from collections.abc import Iterable
from typing import Any

from bus.interface import Decided
from sinks.metrics import Metrics
from sinks.resources import ResourceMeter, Resources
from sinks.web.partitions import Row, Summary
from state.broker import Broker, BrokerState
from state.cluster import Cluster, Totals

NOW_MS = 1_700_000_000_250


def decision(kind: str, reason: str, **fields: Any) -> bytes:
    body = {"kind": kind, "contract_version": 1, "seq": 1, "index": 0, "controller_epoch": 3}
    return json.dumps(body | {"time_ms": NOW_MS - 250, "reason": reason} | fields).encode()


def one_by_one(bodies: Iterable[bytes]) -> list[Decided]:
    """Number texts as the decisions on one event."""
    return [Decided(1, index, body) for index, body in enumerate(bodies)]


BODIES = [
    decision("leader_and_isr", "TOPIC_CREATED", unclean=False),
    decision("leader_and_isr", "TOPIC_CREATED", unclean=False),
    decision("leader_and_isr", "UNCLEAN_ELECTION", unclean=True, time_ms=NOW_MS - 700),
    decision("leader_and_isr", "ISR_SHRUNK", unclean=False, isr=[1], replicas=[1, 2, 3]),
    decision("leader_and_isr", "ISR_EXPANDED", unclean=False),
    decision("answer", "REQUEST_REFUSED", request="alter_isr", error="INVALID_UPDATE_VERSION"),
    decision("answer", "REQUEST_REFUSED", request="create_topic", error="TOPIC_ALREADY_EXISTS"),
    decision("answer", "REQUEST_DONE", request="alter_isr", error="NONE"),
    decision("rejected", "MALFORMED", raw="{", field="", message="not a JSON object"),
    decision("broker", "BROKER_SESSION_EXPIRED", broker=3, state="fenced"),
]


def clusters() -> list[Cluster]:
    states = {1: BrokerState.active, 2: BrokerState.active, 3: BrokerState.fenced}
    brokers = {n: Broker(n, n, "i", state, None, (), (), 0) for n, state in states.items()}
    totals = (Totals(3, 60, 180, 1, 20, 2, 18, 5, 1), Totals(1, 4, 12, 0, 4, 0, 4, 1, 0))
    backlogs: tuple[dict[int, int], ...] = ({2: 4, 3: 60, 9: 1}, {3: 4})
    return [
        Cluster(shard=n, clock_ms=NOW_MS - 250, brokers=brokers, totals=totals[n], backlog=backlogs[n]) for n in (0, 1)
    ]


ROWS = (Row("orders", 7, ("under_min_isr", "under_replicated"), 2, 5, (2,), (1, 2, 3), (), (), 2),)


class FixedMeter(ResourceMeter):
    """A meter that always measures the same."""

    def read(self) -> Resources:
        memory = {"engine": 120_000_000, "jvm": 900_000_000, "workers": 250_000_000}
        return Resources(memory, 5_242_880)


def sample(*, kafka_names: bool = True) -> Metrics:
    metrics = Metrics(kafka_names=kafka_names, controller_id="controller-a", meter=FixedMeter())
    metrics.took_over(3, 0)
    metrics.committed(
        decisions=one_by_one(BODIES),
        clusters=clusters(),
        through=4_000,
        last_seq=4_012,
        now_ms=NOW_MS,
        engine_ms=NOW_MS,
    )
    metrics.blocked(3, 1_000, "")
    metrics.at_risk(Summary(problems={"one_failure_from_offline": 3}, rows=ROWS))
    metrics.batch_ended(duration_ms=320, phases_ms={"addBatch": 250, "walCommit": 30}, events=4_000)
    return metrics
