"""What a rule is given: the event at hand, the state so far, and the recorder of decisions."""

from collections.abc import Mapping
from typing import Any

from controller_logic.decision_recorder import DecisionRecorder
from controller_logic.lag import LogEnd
from controller_logic.working_state import WorkingState
from state.cluster import Outcome, State
from state.events import Logged, Progress
from state.partition import Partition
from state.policy import Policy

# By topic and number: a partition, and the log ends reported since.
GatheredLogEnds = dict[str, dict[int, tuple[Partition, list[LogEnd]]]]
_NO_EVENT = Logged(0, 0, Progress(), b"")


class Batch:
    """A batch of events while it is applied to a shard's state."""

    __slots__ = ("log_ends", "logged", "new_partitions", "recorder", "state")

    def __init__(self, state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
        self.logged = _NO_EVENT
        self.state = WorkingState(state, policy, overrides)
        self.recorder = DecisionRecorder(self.state)
        # What ``commit_alike.AlikeNew`` remembers from one event to the next.
        self.new_partitions: dict[object, Any] = {}
        # What ``log_end_report`` gathers.
        self.log_ends: GatheredLogEnds = {}

    def begin(self, logged: Logged) -> None:
        """Begin the next event."""
        self.logged = logged
        self.state.begin(logged)
        self.recorder.begin(logged)

    def take_log_ends(self) -> GatheredLogEnds:
        """Return the gathered log ends, and keep none."""
        gathered, self.log_ends = self.log_ends, {}
        return gathered

    def outcome(self) -> Outcome:
        """Return the state to be stored and the decisions of the batch."""
        state, changes = self.state.frozen()
        return Outcome(state, changes, self.recorder.said)
