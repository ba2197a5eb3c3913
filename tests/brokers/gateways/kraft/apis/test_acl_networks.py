"""The host of an ACL may be a network from a metadata version of Kafka 4.4 on (KIP-1276)."""

from pathlib import Path

from brokers.wire.errors import ErrorCode
from state.decisions import encode
from state.events import RaiseLevel
from tests.brokers.gateways.kraft.apis.test_acls import (
    ADMIN,
    ALICE,
    STANDARD,
    create_topics,
    creation,
    forwarded,
    grant,
)
from tests.support.gateway_in_process import SUPPORTED, InProcessQuorum, heartbeat

HERE, ELSEWHERE, NONE = "127.0.0.0/8", "10.0.0.0/8", "10.0.0.0/40"
NEWEST = [SUPPORTED[0] | {"MaxSupportedVersion": 33}, *SUPPORTED[1:]]


def test_a_network_is_taken_and_matched_at_the_level_that_knows_it(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, super_users=ADMIN, authorizer_class_name=STANDARD)
    client = quorum.client()
    # Requests that are forwarded come from 127.0.0.1 here.
    here, elsewhere, none = (creation(ALICE, "CREATE", name=host[:3], host=host) for host in (HERE, ELSEWHERE, NONE))
    try:
        epoch = client.ask("BrokerRegistration", **quorum.registration(1, Features=NEWEST))["BrokerEpoch"]
        assert client.ask("BrokerHeartbeat", **heartbeat(1, epoch))["IsFenced"] is False
        assert grant(client, here, none) == [ErrorCode.UNSUPPORTED_VERSION] * 2
        quorum.bus.publish([encode(RaiseLevel(time_ms=0, level=2))])
        update = {"Feature": "metadata.version", "MaxVersionLevel": 32, "UpgradeType": 1}
        assert forwarded(client, "UpdateFeatures", ADMIN, FeatureUpdates=[update])["ErrorCode"] == ErrorCode.NONE
        assert grant(client, here, elsewhere, none) == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert create_topics(client, ALICE, "127", "10.") == {
            "127": ErrorCode.NONE,
            "10.": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
    finally:
        client.close()
        quorum.stop()
