"""A load: the steps that a cluster goes through under any controller."""

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

StepName = Literal[
    "create",
    "idle",
    "shrink ISRs",
    "expand ISRs",
    "one ISR",
    "lose",
    "return",
    "fence",
    "shut down",
    "offsets",
    "offsets one by one",
    "restart",
]

STEPS: tuple[StepName, ...] = (
    "create",
    "shrink ISRs",
    "expand ISRs",
    "one ISR",
    "lose",
    "return",
    "fence",
    "return",
    "shut down",
    "offsets",
    "restart",
)

# How often one ISR is changed to measure it.
ONE_ISR_RUNS = 10
# Who places replicas: the controller, which gives neighbours the same few lists of brokers, or the load at random.
Placement = Literal["automatic", "random"]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of ``partitions`` partitions, and the steps that it goes through.

    Each step that takes a broker away has its own victim, because a broker that has left its ISRs leads nothing.
    """

    partitions: int
    partitions_per_topic: int = 100
    # ≥ 4
    brokers: int = 10
    replication_factor: int = 3
    placement: Placement = "automatic"
    # Of an engine in one process: its min.insync.replicas, and whether partitions keep eligible leader replicas.
    min_isr: int = 1
    eligible: bool = False
    session_ms: int = 9_000
    heartbeat_ms: int = 1_000
    # The most partitions that change their ISRs in a storm.
    storm: int = 50_000
    # The most partitions whose replicas report log-end offsets: with three replicas each, as many reports as may take
    # 1.5 s.
    reporting: int = 150_000
    idle_s: float = 20.0
    # For a reader of the metadata log, a step ends when nothing has come for this long. The pause grows with the load.
    quiet_s: float = 2.0
    # The broker whose session ends. Of the next three, one is fenced on request, one is shut down, and one leaves ISRs
    # in a storm.
    victim: int = 1
    steps: tuple[StepName, ...] = STEPS

    @property
    def topics(self) -> list[tuple[str, int]]:
        """Each topic's name and size."""
        whole, rest = divmod(self.partitions, self.partitions_per_topic)
        sizes = [self.partitions_per_topic] * whole + ([rest] if rest else [])
        return [(f"t{number}", size) for number, size in enumerate(sizes)]

    def assignment(self, topic: str, size: int) -> list[tuple[int, ...]] | None:
        """Return the replicas of a topic's partitions, the same in every run; None if the controller places them."""
        if self.placement == "automatic":
            return None
        drawn = random.Random(topic)
        return [tuple(drawn.sample(self.everyone, self.replication_factor)) for _ in range(size)]

    @property
    def reports(self) -> int:
        """How many replicas report log-end offsets."""
        return min(self.reporting, self.partitions) * self.replication_factor

    @property
    def everyone(self) -> range:
        return range(1, self.brokers + 1)

    @property
    def fenced(self) -> int:
        return self.victim + 1

    @property
    def shut_down(self) -> int:
        return self.victim + 2

    @property
    def straggler(self) -> int:
        return self.victim + 3


def creations(load: Load) -> Iterator[dict[str, Any]]:
    """Give the fields of the event that creates each topic."""
    for topic, size in load.topics:
        replicas = load.assignment(topic, size)
        if replicas is None:
            yield {"topic": topic, "partitions": size, "replication_factor": load.replication_factor}
        else:
            yield {"topic": topic, "assignment": {str(number): ids for number, ids in enumerate(replicas)}}


class Took(msgspec.Struct, frozen=True, kw_only=True):
    """What one step cost. Times are in seconds."""

    # From the request, or from the fencing tick, to the last change that a broker can act on.
    wall_s: float
    # CPU of all processes of the controller from the step's cause to its end.
    cpu_s: float
    # Partitions that changed, or replicas whose offsets were reported.
    changes: int
    # From the end of the lost broker's session, if that was the cause.
    session_end_s: float | None = None
    # The most memory that the process took.
    peak_mib: int | None = None


def median_of(took: Sequence[Took]) -> Took:
    """Return the medians of several runs of one step, and the most changes."""
    return Took(
        wall_s=statistics.median(one.wall_s for one in took),
        cpu_s=statistics.median(one.cpu_s for one in took),
        changes=max(one.changes for one in took),
    )


class Driver(Protocol):
    """One controller under the load."""

    # The steps that this driver cannot play.
    passes_over: frozenset[StepName]

    def start(self) -> None:
        """Start the controller, and let every broker join."""
        ...

    def play(self, step: StepName) -> Took:
        """Play one step to its end."""
        ...

    def stop(self) -> None:
        """End everything that was started."""
        ...
