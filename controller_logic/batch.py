"""The input of a rule: the event at hand, the state so far, and the recorder of decisions."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controller_logic.decision_recorder import DecisionRecorder
from controller_logic.working_state import WorkingState
from state.cluster import Outcome, State
from state.events import LogEndOffsets, Logged
from state.policy import Policy


class LogEndReport(NamedTuple):
    """A registered broker's report of log ends, before its rows are settled."""

    logged: Logged
    event: LogEndOffsets
    # Whether the broker is still registered as it was when it made the report.
    is_current: bool


class Remembered:
    """What ``commit_alike`` remembers of one ``policy``: effects, and what rules may depend on about brokers.

    None of it is about a shard or a batch, so all of them may share it.
    """

    __slots__ = ("effects", "status_numbers")

    def __init__(self) -> None:
        self.effects: dict[object, Any] = {}
        self.status_numbers: dict[tuple[object, ...], int] = {}


class Batch:
    """A batch of events while it is applied to a shard's state."""

    __slots__ = ("log_ends", "recorder", "remembered", "state", "statuses")

    def __init__(
        self, state: State, policy: Policy, overrides: Mapping[str, str], remembered: Remembered | None = None
    ) -> None:
        self.state = WorkingState(state, policy, overrides)
        self.recorder = DecisionRecorder(self.state)
        self.remembered = remembered or Remembered()
        # What ``commit_alike`` knows of the brokers as they are.
        self.statuses: Any = None
        # What ``log_end_report`` gathers.
        self.log_ends: list[LogEndReport] = []

    @property
    def logged(self) -> Logged:
        """The event at hand."""
        return self.recorder.logged

    def begin(self, logged: Logged) -> None:
        self.state.begin(logged)
        self.recorder.begin(logged)

    def gather_log_ends(self, event: LogEndOffsets, is_current: bool) -> None:
        """Keep the report at hand until the reports are settled."""
        self.log_ends.append(LogEndReport(self.logged, event, is_current))

    def take_log_ends(self) -> list[LogEndReport]:
        """Return the gathered reports, and keep none."""
        gathered, self.log_ends = self.log_ends, []
        return gathered

    def outcome(self) -> Outcome:
        """Return the state to be stored and the decisions of the batch."""
        state, changes = self.state.frozen()
        return Outcome(state, changes, self.recorder.said)
