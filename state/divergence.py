"""Where an observed controller and the rules differ, and what no controller may do."""

from msgspec import UNSET, UnsetType

from state.decision import Decision

# The fields that are compared, in the order of decisions.
FIELDS = ("isr", "leader", "leader_epoch", "partition_epoch")
# What holds for every partition, in the order of decisions.
INVARIANTS = (
    "a leader is not fenced",
    "the leader is in the ISR",
    "every member of the ISR is an assigned replica",
    "epochs do not go back",
    "another leader has another leader epoch",
    "no fenced broker joins the ISR",
)


class Divergence(Decision, frozen=True, kw_only=True, tag="divergence"):
    """The rules would have decided otherwise than the observed controller."""

    # The operation in the observed metadata log.
    offset: int
    topic: str
    partition: int
    # What differs: isr, leader, leader_epoch or partition_epoch.
    field: str
    # What the observed controller decided.
    observed: int | tuple[int, ...]
    # What the rules would have decided.
    predicted: int | tuple[int, ...]
    # The cause whose rule was asked.
    rule: str
    # The known defect of Kafka that it looks like.
    defect: str | UnsetType = UNSET


class Violation(Decision, frozen=True, kw_only=True, tag="violation"):
    """The observed controller did what no controller may do."""

    # The operation in the observed metadata log.
    offset: int
    topic: str
    partition: int
    # What should hold.
    invariant: str
    # What is wrong, for people.
    message: str
    # The known defect of Kafka that it looks like.
    defect: str | UnsetType = UNSET
