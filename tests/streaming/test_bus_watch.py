"""A job says when a stranger's open transaction keeps it from deciding, and when that has ended."""

from structlog.testing import capture_logs

from bus.interface import Blocked
from sinks.metrics import Metrics
from streaming.bus_watch import BLOCKED_AFTER_MS, LOOK_INTERVAL_MS, BusWatch

FIRST, SECOND = Blocked(5, 3), Blocked(9, 1)


class BlockedBus:
    """A bus that may be blocked."""

    def __init__(self) -> None:
        self.found: Blocked | None = None
        self.looks = 0

    def blocked(self) -> Blocked | None:
        self.looks += 1
        return self.found

    def due_seq(self, after: int) -> int:
        return after

    def blocker(self) -> str:
        return f"a transaction at {self.found.offset}" if self.found else ""


class Watched:
    """A watch with a clock that a test moves."""

    def __init__(self) -> None:
        self.now_ms = 7_000
        self.bus, self.metrics = BlockedBus(), Metrics()
        self.watch = BusWatch(self.bus, self.metrics, lambda: self.now_ms)  # type: ignore[arg-type]

    def look(self, found: Blocked | None, times: int = 1) -> None:
        self.bus.found = found
        for _ in range(times):
            self.watch.look()
            self.now_ms += LOOK_INTERVAL_MS

    @property
    def measured(self) -> tuple[int, int, str]:
        snapshot = self.metrics.snapshot
        return snapshot.blocked_records, snapshot.blocked_ms, snapshot.blocker


def test_a_transaction_that_stays_open_is_said_once_and_so_is_its_end() -> None:
    watched = Watched()
    with capture_logs() as told:
        watched.look(None)
        watched.look(FIRST, 2)
        assert (watched.measured, told) == ((3, 1_000, ""), [])
        watched.look(FIRST, 3)
        assert watched.measured == (3, 4_000, "a transaction at 5")
        watched.look(None)
    assert watched.measured == (0, 0, "")
    assert [(one["event"], one.get("because_of"), one.get("after_ms")) for one in told] == [
        ("events cannot be decided", "a transaction at 5", None),
        ("events can be decided again", None, 5_000),
    ]


def test_short_transactions_in_turn_block_nothing() -> None:
    watched = Watched()
    with capture_logs() as told:
        for number in range(10):
            watched.look(Blocked(number, 1), BLOCKED_AFTER_MS // LOOK_INTERVAL_MS)
    assert told == []
    assert watched.measured == (1, 1_000, "")


def test_a_second_transaction_right_behind_the_first_is_named_too() -> None:
    watched = Watched()
    with capture_logs() as told:
        watched.look(FIRST, 3)
        watched.look(SECOND, 3)
    assert [one.get("because_of") for one in told] == ["a transaction at 5", None, "a transaction at 9"]


def test_a_new_watch_forgets_what_the_one_before_has_seen() -> None:
    watched = Watched()
    watched.look(FIRST, 3)
    watched.bus.found = None
    BusWatch(watched.bus, watched.metrics, lambda: 1).look()  # type: ignore[arg-type]
    assert watched.measured == (0, 0, "")


def test_looks_at_the_bus_are_rare() -> None:
    watched = Watched()
    for _ in range(5):
        watched.watch.look()
        watched.now_ms += LOOK_INTERVAL_MS // 5
    assert watched.bus.looks == 1
