"""Keep the voters in the metadata log up to date (KIP-853).

Brokers that name only ``controller.quorum.bootstrap.servers`` find the leader through any gateway, but send it their
registration only if the log says where it is. Once the log has voters, brokers believe it and not their own settings.

So a gateway with a new address announces it before it may lead (UpdateRaftVoter). If it led first, brokers would look
for the leader at the former address. The leading gateway announces which voters there are. It does not repeat the
address of another gateway, which may have changed. Each gateway watches its own address.
"""

import asyncio
import contextlib
from collections.abc import Mapping

import structlog
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from brokers.gateways.kraft.context import Context
from brokers.gateways.shared.engine_client import NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.voters import Voter
from bus.clock import now_ms
from state.decisions import Answer
from state.entity import VOTERS
from state.events import AlterEntity
from state.voter_endpoints import VoterEndpoint, text_of

logger = structlog.get_logger()

# The pause after an answer. Without it, two starts of one gateway would replace each other's address at each heartbeat.
_PAUSE_S = 10.0


async def announce_here(context: Context) -> None:
    """Announce this gateway's address, if the metadata log names voters but not this address.

    Wait until the engine answers: while it does not, no gateway can be elected either.
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
    """Ask the engine for what the log lacks: this gateway's own address, and the other voters too while it leads."""
    while True:
        await asyncio.sleep(context.settings.gateway_heartbeat_interval_ms / 1000)
        changes = _due(context)
        # The leading gateway must not change what the next one has announced.
        epoch = context.quorum_view.quorum_epoch if context.quorum_view.leads else UNSET
        if changes and await _asked(context, changes, epoch) is not None:
            await asyncio.sleep(_PAUSE_S)


def request(context: Context) -> AlterEntity:
    """Return the event after which the log has the voters that this gateway knows."""
    return _event(_changes(context))


def _due(context: Context) -> dict[str, str | None]:
    """Return the changes that this gateway requests without an admin."""
    held, here = context.logged_voters, str(context.identity.gateway)
    if context.quorum_view.leads:
        return _changes(context) if held or context.settings.kraft_version else {}
    # It does not add itself, because the leading gateway may just have removed it.
    return {voter: place for voter, place in _changes(context).items() if voter == here and voter in held}


def _changes(context: Context) -> dict[str, str | None]:
    """Return the voters that the log lacks, this gateway's address if the log's differs, and None for unknown ones."""
    held, here = context.logged_voters, str(context.identity.gateway)
    known = {str(one.voter): _endpoints(context, one) for one in context.identity.voters}
    lacking = {voter: place for voter, place in known.items() if voter not in held}
    changed = {here: known[here]} if held.get(here) != known[here] else {}
    return {**{voter: None for voter in held if voter not in known}, **lacking, **changed}


def _endpoints(context: Context, voter: Voter) -> str:
    names = context.settings.listener_names
    return text_of(VoterEndpoint(listener, voter.host, voter.port) for listener in names)


async def _asked(
    context: Context, changes: Mapping[str, str | None], quorum_epoch: int | UnsetType = UNSET
) -> Answer | None:
    """Return the engine's answer; None if there is none."""
    with contextlib.suppress(NoAnswerError, QueueFullError):
        event = replace(_event(changes), quorum_epoch=quorum_epoch)
        [answer] = await context.engine.ask(event, lane=Lane.GATEWAY)
        if answer.error != "NONE":
            logger.warning("the voters in the metadata log stay", error=answer.error, why=answer.message)
        return answer
    return None


def _event(changes: Mapping[str, str | None]) -> AlterEntity:
    return AlterEntity(time_ms=now_ms(), entity_type=VOTERS, names={}, values={**changes})
