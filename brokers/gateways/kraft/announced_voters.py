"""Keep the voters in the metadata log up to date (KIP-853).

Brokers that name only ``controller.quorum.bootstrap.servers`` find the leader through any gateway, but send it their
registration only if the log says where it is. Once the log has voters, brokers believe it and not their own settings.

So a gateway that has moved says where it is before it may lead (UpdateRaftVoter). If it led first, brokers would
look for the leader at the former address. Which voters there are, the leading gateway says.
"""

import asyncio
import contextlib
from collections.abc import Mapping

import structlog

from brokers.engine.engine_client import NoAnswerError
from brokers.engine.event_queue import Lane, QueueFullError
from brokers.gateways.kraft.context import Context
from brokers.voters import Voter
from bus.clock import now_ms
from state.decisions import Answer
from state.entity import VOTERS
from state.events import AlterEntity
from state.voter_endpoints import VoterEndpoint, text_of

logger = structlog.get_logger()

# After a refusal.
_PAUSE_S = 10.0


async def announce_here(context: Context) -> None:
    """Say where this gateway is, if the metadata log names voters and another address of this one, or none.

    Without an answer no gateway can be elected either, so this waits for one.
    """
    here = str(context.identity.gateway)
    while context.logged_voters and context.logged_voters.get(here) != _endpoints(context, context.identity.here):
        answer = await _asked(context, {here: _endpoints(context, context.identity.here)})
        if answer is None:
            logger.warning("the engine does not answer; this gateway is not yet announced")
        elif answer.error != "NONE":
            return
        await asyncio.sleep(context.settings.gateway_heartbeat_interval_ms / 1000)


async def keep_announced(context: Context) -> None:
    """Ask the engine for the voters whenever this gateway leads and the log lacks them or has others."""
    while True:
        await asyncio.sleep(context.settings.gateway_heartbeat_interval_ms / 1000)
        held = context.logged_voters
        if not context.quorum_view.leads or not (held or context.settings.kraft_version) or held == _wanted(context):
            continue
        answer = await _asked(context, _changes(context))
        if answer is not None and answer.error != "NONE":
            await asyncio.sleep(_PAUSE_S)


def request(context: Context, *, validate_only: bool) -> AlterEntity:
    """Return the event after which the log has the voters that this gateway knows."""
    return _event(_changes(context), validate_only=validate_only)


def _changes(context: Context) -> dict[str, str | None]:
    return {**dict.fromkeys(context.logged_voters), **_wanted(context)}


def _wanted(context: Context) -> dict[str, str]:
    """Return the voters that this gateway knows, where they said that they are, or else where this gateway has them."""
    known = {str(one.voter): _endpoints(context, one) for one in context.identity.voters}
    others = {voter: place for voter, place in context.logged_voters.items() if voter in known}
    here = str(context.identity.gateway)
    return known | others | {here: known[here]}


def _endpoints(context: Context, voter: Voter) -> str:
    names = context.settings.listener_names
    return text_of(VoterEndpoint(listener, voter.host, voter.port) for listener in names)


async def _asked(context: Context, changes: Mapping[str, str | None]) -> Answer | None:
    """Return the engine's answer; None if there is none."""
    with contextlib.suppress(NoAnswerError, QueueFullError):
        [answer] = await context.engine.ask(_event(changes), lane=Lane.GATEWAY)
        if answer.error != "NONE":
            logger.warning("the voters in the metadata log stay", error=answer.error, why=answer.message)
        return answer
    return None


def _event(changes: Mapping[str, str | None], *, validate_only: bool = False) -> AlterEntity:
    return AlterEntity(time_ms=now_ms(), entity_type=VOTERS, names={}, values={**changes}, validate_only=validate_only)
