"""Name in each decision the admin whose request caused it."""

from msgspec.structs import replace

from controller_logic.batch import Batch
from state.alike import AlikeDecision, Pattern, Said, TopicWatermarks, pattern_of
from state.event import AdminEvent
from state.rules import NAMED_RULES


def name_in_decisions(batch: Batch, said_before: int) -> None:
    """Add the principal of the event at hand to all decisions on it: those after the first ``said_before``.

    What follows later, such as the end of a reassignment, is caused by other events and has no principal.
    """
    event = batch.logged.event
    if not isinstance(event, AdminEvent) or not event.principal or batch.state.rules_version < NAMED_RULES:
        return
    said = batch.recorder.said
    said[said_before:] = _named(said[said_before:], event.principal)


def _named(said: list[Said], principal: str) -> list[Said]:
    # Later events may use the same patterns, so each gets a copy with the name. They stay alive as long as their rows.
    copies: dict[int, Pattern] = {}
    named: list[Said] = []
    for one in said:
        if isinstance(one, TopicWatermarks):
            named.append(replace(one, common=replace(one.common, principal=principal)))
            continue
        if not isinstance(one, AlikeDecision):
            named.append(replace(one, principal=principal))
            continue
        pattern = copies.get(id(one.pattern))
        if pattern is None:
            pattern = copies[id(one.pattern)] = pattern_of(replace(one.pattern.common, principal=principal))
        named.append(
            AlikeDecision(pattern, one.topic, one.topic_id, one.partition, one.leader_epoch, one.partition_epoch)
        )
    return named
