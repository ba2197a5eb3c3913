"""Follow the decision log, and keep the newest state of brokers and partitions."""

import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from brokers.launch.patience import Patience
from bus.embedded import EmbeddedBus
from bus.interface import BusError
from cli.demo.cluster import DemoError
from state.decisions import Answer, AnyDecision, BrokerDecision, HighWatermark, LeaderAndIsr, NoOp, decode

POLL_S = 0.01
DECISIONS_PER_READ = 1_000
LATEST = 8
JOIN_TIMEOUT_S = 5.0


class WatchedPartition(msgspec.Struct, frozen=True):
    """A partition as last decided. ``elected_s`` is the monotonic time at which its leader was elected."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    is_moving: bool
    elected_s: float
    high_watermark: int = 0


class Watch(threading.Thread):
    """A thread that reads decisions until ``stop``.

    ``check`` raises if a process has ended, and ``moved`` returns something new while the processes move on.
    """

    def __init__(self, bus: EmbeddedBus, topic: str, check: Callable[[], None], moved: Callable[[], object]) -> None:
        super().__init__(name="watch", daemon=True)
        self._bus = bus
        self._topic = topic
        self._check = check
        self._moved = moved
        self._decisions = 0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._error: BusError | OSError | None = None
        self.on_decision: Callable[[AnyDecision], None] = lambda decision: None
        self.brokers: dict[int, str] = {}
        self.partitions: dict[int, WatchedPartition] = {}
        self.latest: deque[AnyDecision] = deque(maxlen=LATEST)

    def run(self) -> None:
        after = (0, -1)
        while not self._stopping.is_set():
            # An OSError comes from printing decisions, for example when the reader of the output has left.
            try:
                batch = self._bus.decisions(after, DECISIONS_PER_READ)
                if batch:
                    after = (batch[-1].seq, batch[-1].idx)
                    with self._changed:
                        self._decisions += len(batch)
                        for decided in batch:
                            self._take_in(decode(decided.body))
                        self._changed.notify_all()
            except (BusError, OSError) as error:
                self._error = error
                return
            if not batch:
                self._stopping.wait(POLL_S)

    def _take_in(self, decision: AnyDecision) -> None:
        match decision:
            case BrokerDecision():
                self.brokers[decision.broker] = decision.state
            case LeaderAndIsr() if decision.topic == self._topic:
                before = self.partitions.get(decision.partition)
                same = before is not None and before.leader == decision.leader
                self.partitions[decision.partition] = WatchedPartition(
                    decision.leader,
                    decision.leader_epoch,
                    decision.isr,
                    decision.replicas,
                    bool(decision.adding_replicas or decision.removing_replicas),
                    before.elected_s if before and same else time.monotonic(),
                    before.high_watermark if before else 0,
                )
            case HighWatermark() if decision.topic == self._topic:
                before = self.partitions[decision.partition]
                self.partitions[decision.partition] = msgspec.structs.replace(
                    before, high_watermark=decision.high_watermark
                )
                return
            case Answer(error="NONE") | NoOp():
                return
        self.latest.append(decision)
        self.on_decision(decision)

    def wait_for(self, what: str, test: Callable[["Watch"], bool], timeout_s: float) -> None:
        """Wait until the decisions make ``test`` true. Raises ``DemoError`` with ``what`` after the time-out.

        The wait is longer while decisions come or the processes move on. Raises what stopped the thread, if that was an
        ``OSError``.
        """
        patience = Patience(timeout_s, lambda: (self._decisions, self._moved()))
        with self._changed:
            while not test(self):
                self._check()
                if isinstance(self._error, OSError):
                    raise self._error
                if self._error:
                    raise DemoError(f"while waiting for {what}: {self._error}")
                if patience.is_over():
                    raise DemoError(f"no {what} within {patience.waited_s:.0f} s: {self._seen()}")
                self._changed.wait(0.1)

    def _seen(self) -> str:
        brokers = ", ".join(f"broker {broker} {state}" for broker, state in sorted(self.brokers.items())) or "no broker"
        return f"there are {self._decisions} decisions, and by them {brokers}"

    def stop(self) -> None:
        self._stopping.set()
        if self.is_alive():
            self.join(JOIN_TIMEOUT_S)
