"""Log lines about what an engine is and does: its start, its first batch, and each fencing and election."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog

from bus.decided_runs import runs_in
from bus.interface import Decided
from conf.loader import differing
from conf.settings import Settings
from isrflow.contract import SQLITE
from isrflow.masking import masked
from state.counted import reasons_in
from state.decisions import BrokerDecision, Decision, LeaderAndIsr, QuorumDecision, decode
from state.numbered_run import NumberedRun
from state.reason import Reason
from streaming.checkpoint_place import Checkpoint

# Of the elections of one batch, this many get a line each. One more line says how many there were.
ELECTIONS_SHOWN_MAX = 20
_LEADER = b"leader_and_isr"
_OTHERS = frozenset({b"broker", b"quorum"})
# In the text of a leader_and_isr no free text comes before the reason.
_REASON = b'"reason":"'
_UNCLEAN = b'"unclean":true'
# Only elections that passed over a replica have it.
_PASSED_OVER = b'"passed_over":'
_ELECTIONS = frozenset(
    {
        Reason.LEADER_FENCED,
        Reason.LEADER_RETURNED,
        Reason.UNCLEAN_ELECTION,
        Reason.LOG_ELECTION,
        Reason.PREFERRED_ELECTION,
        Reason.LEADER_BALANCE,
    }
)
_ELECTION_TEXTS = frozenset(reason.encode() for reason in _ELECTIONS)

logger = structlog.get_logger("isrflow.job")


class EngineLog:
    """The log lines about one job."""

    def __init__(self, settings: Settings, checkpoint: Checkpoint, controller_epoch: int) -> None:
        self._is_deciding = False
        self._controller_epoch = controller_epoch
        bus = settings.bus
        if bus.startswith(SQLITE):
            bus = SQLITE + str(Path(bus.removeprefix(SQLITE)).absolute())
        logger.info(
            "started",
            version=version("isrflow"),
            bus=masked(bus),
            checkpoint=str(checkpoint),
            controller_epoch=controller_epoch,
            settings={key: masked(str(value)) for key, value in differing(settings).items()},
        )

    def committed(self, through: int, decisions: Sequence[Decided]) -> None:
        """Write the lines about a batch that was committed."""
        if not self._is_deciding:
            self._is_deciding = True
            logger.info("deciding", controller_epoch=self._controller_epoch, seq=through)
        elections = 0
        for run in runs_in(decisions):
            if run.kind == _LEADER:
                in_run = _elections_in(run)
                if in_run:
                    _tell_elections(run, shown=elections)
                elections += in_run
            elif run.kind in _OTHERS:
                _tell_decision(run.text)
        if elections > ELECTIONS_SHOWN_MAX:
            logger.info("more elections", of=elections, shown=ELECTIONS_SHOWN_MAX)


def _elections_in(run: NumberedRun) -> int:
    """Count the elections among the leader_and_isr decisions of a run."""
    if run.columns is None:
        return int(_is_election(run.text))
    return sum(n for told, n in reasons_in(run.columns).items() if told.passes_over or told.reason in _ELECTIONS)


def _tell_elections(run: NumberedRun, shown: int) -> None:
    """Write a line about each election of a run that is unclean or among the first of its batch.

    ``shown`` elections of the batch come before this run.
    """
    is_clean = run.columns is not None and not any(told.unclean for told in reasons_in(run.columns))
    for body in run.each():
        if shown >= ELECTIONS_SHOWN_MAX and is_clean:
            return
        if _is_election(body):
            shown += 1
            if shown <= ELECTIONS_SHOWN_MAX or _UNCLEAN in body:
                _tell_decision(body)


def _is_election(body: bytes) -> bool:
    """Return whether a leader_and_isr is an election, from its text, because decoding it takes three times as long."""
    start = body.index(_REASON) + len(_REASON)
    return body[start : body.index(b'"', start)] in _ELECTION_TEXTS or _PASSED_OVER in body


def _tell_decision(body: bytes) -> None:
    decision = decode(body)
    if isinstance(decision, BrokerDecision):
        _tell_broker(decision)
    elif isinstance(decision, QuorumDecision):
        who = "controller" if decision.reason == Reason.CONTROLLER_CHANGED else "gateway"
        _tell(f"a {who} leads", decision, voter=decision.voter, quorum_epoch=decision.quorum_epoch)
    elif isinstance(decision, LeaderAndIsr):
        _tell_election(decision)


def _tell_broker(decision: BrokerDecision) -> None:
    if decision.reason in (Reason.BROKER_REGISTERED, Reason.BROKER_RESTARTED):
        # It is fenced until it asks to serve.
        _tell("a broker registered", decision, broker=decision.broker)
    elif decision.state == "fenced":
        _tell("a broker is fenced", decision, "warning", broker=decision.broker)
    elif decision.reason == Reason.BROKER_UNFENCED:
        _tell("a broker serves", decision, broker=decision.broker)


def _tell_election(decision: LeaderAndIsr) -> None:
    is_served = decision.leader >= 0
    _tell(
        "a leader was elected" if is_served else "a partition has no leader",
        decision,
        "warning" if decision.unclean or not is_served else "info",
        partition=f"{decision.topic}-{decision.partition}",
        leader=decision.leader,
        leader_epoch=decision.leader_epoch,
        isr=list(decision.isr),
        unclean=decision.unclean,
    )


def _tell(what: str, decision: Decision, level: str = "info", **facts: Any) -> None:
    getattr(logger, level)(what, **facts, reason=decision.reason.value, seq=decision.seq)
