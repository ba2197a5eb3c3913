"""What the rules would decide if brokers failed now. No event is needed, so a shadow can be asked too."""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from controller_logic.availability import brokers_failed
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker
from state.broker import BrokerState
from state.cluster import Outcome, State
from state.policy import Policy
from state.reason import Reason


def lose(state: State, lost: Collection[int], policy: Policy, overrides: Mapping[str, str]) -> Outcome:
    """Decide what follows if the sessions of the live brokers in ``lost`` end at once."""
    batch = Batch(state, policy, overrides)
    failed = [broker for broker in batch.state.brokers.values() if broker.is_live and broker.broker in lost]
    for broker in failed:
        commit_broker(batch, replace(broker, state=BrokerState.fenced), Reason.BROKER_SESSION_EXPIRED)
    brokers_failed(batch, frozenset(broker.broker for broker in failed))
    return batch.outcome()
