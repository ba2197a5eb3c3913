"""A broker and a gateway, both with Kafka's authorizer: super users and ACLs decide who may change what."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from msgspec.structs import replace

from brokers.launch.kafka.tools import TOPICS, ToolError, run_tool
from brokers.launch.ports import free_ports
from tests.support.clients import error_name_of
from tests.support.real_cluster import AUTHORIZER, LOOPBACK, RealCluster, led_by_rules
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
GATEWAY = "the gateway"
TOKEN_KEY = "a key for tokens"
PASSWORDS = {"admin": "of-admin", "mallory": "of-mallory"}
Ask = Callable[[AdminClient], dict[Any, Future[Any]]]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str | None, str]]:
    """The broker's address for each user (None: no authentication), and the gateway's address."""
    folder = tmp_path_factory.mktemp("real")
    key = folder / "token.key"
    key.write_text(TOKEN_KEY)
    access = {"super.users": "User:admin", "authorizer.class.name": AUTHORIZER, "allow.authorizer.on.plaintext": "true"}
    access |= {"delegation.token.secret.key.file": str(key)}
    cluster = RealCluster(folder, brokers=1, gateway_settings=access)
    node = cluster.broker(1)
    [port] = free_ports(1)
    plain, sasl = f"{LOOPBACK}:{node.spec.port}", f"{LOOPBACK}:{port}"
    bound = f"PLAINTEXT://{plain},SASL_PLAINTEXT://{sasl}"
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
    node.spec = replace(
        node.spec,
        overrides=node.spec.overrides
        | {
            "listeners": bound,
            "advertised.listeners": bound,
            "listener.security.protocol.map": protocols,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
            "authorizer.class.name": AUTHORIZER,
            "delegation.token.secret.key": TOKEN_KEY,
            # For the other brokers, and for clients that do not authenticate.
            "super.users": "User:ANONYMOUS;User:admin",
        },
    )
    with led_by_rules(cluster):
        yield {None: plain, GATEWAY: f"{LOOPBACK}:{cluster.voters[0].port}"} | dict.fromkeys(PASSWORDS, sasl)


def conf(addresses: dict[str | None, str], user: str | None, **more: Any) -> dict[str, Any]:
    known = {"bootstrap.servers": addresses[user]} | {key.replace("_", "."): value for key, value in more.items()}
    if user is None:
        return known
    mechanism = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN"}
    return known | mechanism | {"sasl.username": user, "sasl.password": PASSWORDS[user]}


def error_of(ask: Ask, admin: AdminClient) -> str:
    [future] = ask(admin).values()
    return error_name_of(future)


def keeping(topic: str) -> Ask:
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    return lambda admin: admin.incremental_alter_configs([resource])


def test_only_super_users_change_anything(addresses: dict[str | None, str]) -> None:
    changes: list[Ask] = [
        lambda admin: admin.create_topics([NewTopic("mine", 1, 1)]),
        lambda admin: admin.create_partitions([NewPartitions("kept", 2)]),
        keeping("kept"),
        lambda admin: admin.delete_topics(["kept"]),
    ]
    admin = AdminClient(conf(addresses, "admin"))
    assert error_of(lambda one: one.create_topics([NewTopic("kept", 1, 1)]), admin) == "NONE"
    for user in (None, "mallory"):
        other = AdminClient(conf(addresses, user))
        assert [error_of(ask, other) for ask in changes] == ["TOPIC_AUTHORIZATION_FAILED"] * len(changes), user
    known = admin.list_topics(timeout=TIMEOUT_S).topics
    assert ("mine" in known, len(known["kept"].partitions)) == (False, 1)
    assert [error_of(ask, admin) for ask in changes] == ["NONE"] * len(changes)


def test_a_group_keeps_reading_topics_that_brokers_created(addresses: dict[str | None, str]) -> None:
    """The broker itself creates ``__consumer_offsets``, and it does not authenticate at the gateway."""
    admin = AdminClient(conf(addresses, "admin"))
    assert error_of(lambda one: one.create_topics([NewTopic("read", 1, 1)]), admin) == "NONE"
    producer = Producer(conf(addresses, "admin", acks="all", message_timeout_ms=30_000))
    producer.produce("read", b"record")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer(conf(addresses, "admin", group_id="readers", auto_offset_reset="earliest"))
    try:
        consumer.subscribe(["read"])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.value() == b"record"
        consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


def allowed(kind: ResourceType, name: str, pattern: ResourcePatternType, who: str, what: AclOperation) -> AclBinding:
    return AclBinding(kind, name, pattern, who, "*", what, AclPermissionType.ALLOW)


def test_acls_reach_the_gateway_and_the_broker(addresses: dict[str | None, str]) -> None:
    """A client creates ACLs through the broker, and a tool lists and deletes them at the gateway."""
    admin, mallory = AdminClient(conf(addresses, "admin")), AdminClient(conf(addresses, "mallory"))
    of_mallory = (ResourceType.TOPIC, "m-", ResourcePatternType.PREFIXED, "User:mallory")
    whole = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:ANONYMOUS", AclOperation.ALTER)
    bindings = [allowed(*of_mallory, AclOperation.CREATE), allowed(*of_mallory, AclOperation.WRITE), allowed(*whole)]
    for future in admin.create_acls(bindings).values():
        future.result(TIMEOUT_S)
    assert error_of(lambda one: one.create_topics([NewTopic("m-1", 1, 1)]), mallory) == "NONE"
    assert error_of(lambda one: one.create_topics([NewTopic("n-1", 1, 1)]), mallory) == "TOPIC_AUTHORIZATION_FAILED"

    everything = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    wait_until(
        lambda: len(admin.describe_acls(AclBindingFilter(*everything)).result(TIMEOUT_S)) == len(bindings),
        "the broker to have read all ACLs",
    )
    errors: list[Any] = []
    producer = Producer(conf(addresses, "mallory", message_timeout_ms=30_000))
    producer.produce("m-1", b"record", on_delivery=lambda error, _: errors.append(error))
    assert (producer.flush(TIMEOUT_S), errors) == (0, [None])

    listed = run_tool("AclCommand", addresses[GATEWAY], ["--list"], is_controller=True)
    assert listed.count("User:mallory") == 2
    ended = (
        "--remove --force --allow-principal User:mallory --operation Create --topic m- --resource-pattern-type prefixed"
    )
    run_tool("AclCommand", addresses[GATEWAY], ended.split(), is_controller=True)
    assert error_of(lambda one: one.create_topics([NewTopic("m-2", 1, 1)]), mallory) == "TOPIC_AUTHORIZATION_FAILED"


def has_credential(admin: AdminClient, user: str) -> bool:
    try:
        return bool(admin.describe_user_scram_credentials([user])[user].result(TIMEOUT_S).scram_credential_infos)
    except KafkaException:
        return False


def test_a_client_logs_in_with_a_credential_that_an_admin_set(addresses: dict[str | None, str]) -> None:
    """The gateway and the engine pass the credential on, and the broker verifies the client's password by it."""
    admin = AdminClient(conf(addresses, "admin"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("carol", info, b"of-carol")
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result(TIMEOUT_S)
    wait_until(lambda: has_credential(admin, "carol"), "the broker to know the credential")
    scram = {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "carol", "sasl.password": "of-carol"}
    carol = AdminClient(conf(addresses, "admin") | scram)
    assert carol.list_topics(timeout=TIMEOUT_S).brokers
    mallory = AdminClient(conf(addresses, "mallory"))
    [future] = mallory.alter_user_scram_credentials([change]).values()
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        future.result(TIMEOUT_S)


def logged_in(file: Path, mechanism: str, module: str, fields: str) -> list[str]:
    """Write the properties with which Kafka's tools log in; return the options that name them."""
    login = f"org.apache.kafka.common.security.{module} required {fields};"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n")
    return ["--command-config", str(file)]


def test_a_client_logs_in_with_a_delegation_token(addresses: dict[str | None, str], tmp_path: Path) -> None:
    """The gateway makes the token's id and HMAC, and the broker derives the same HMAC from the same key."""
    fields = f'username="mallory" password="{PASSWORDS["mallory"]}"'
    mallory = logged_in(tmp_path / "mallory", "PLAIN", "plain.PlainLoginModule", fields)

    def tokens(arguments: str) -> str:
        return run_tool("DelegationTokenCommand", addresses["mallory"], [*arguments.split(), *mallory])

    made = re.search(
        r"^(\S{22})\s+(\S{88})\s+User:mallory\s", tokens("--create --max-life-time-period -1"), re.MULTILINE
    )
    assert made is not None
    token_id, proof = made.groups()
    fields = f'username="{token_id}" password="{proof}" tokenauth="true"'
    by_token = logged_in(tmp_path / "token", "SCRAM-SHA-512", "scram.ScramLoginModule", fields)
    listed = "--describe --owner-principal User:mallory"
    wait_until(lambda: token_id in tokens(listed), "the broker to have read the token")
    run_tool(TOPICS, addresses["mallory"], ["--list", *by_token])
    tokens(f"--renew --renew-time-period 60000 --hmac {proof}")
    tokens(f"--expire --expiry-time-period -1 --hmac {proof}")
    wait_until(lambda: token_id not in tokens(listed), "the broker to have read that the token is gone")
    with pytest.raises(ToolError, match="invalid credentials"):
        run_tool(TOPICS, addresses["mallory"], ["--list", *by_token])
