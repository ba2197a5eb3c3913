"""Stock controllers behind TLS, a password and ACLs: a shadow needs the rights to read, and gets no further."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from brokers.shadow.client import client_of
from brokers.shadow.quorum import RefusedReaderError
from brokers.shadow.source import Batch
from conf.security.authority import Authority
from isrflow.kafka.client_config import config_in
from tests.support.real_cluster import AUTHORIZER
from tests.support.shadow_reader import ShadowReader
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
SECURITY = "org.apache.kafka.common.security"
PASSWORDS = {"node": "of-node", "shadow": "of-shadow", "stranger": "of-stranger"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SecureStock:
    """A controller with a secure listener, and a broker to which admins come without a proof."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory / "ca")
        users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        plain = f'{SECURITY}.plain.PlainLoginModule required username="node" password="{PASSWORDS["node"]}" {users};'
        secure = "listener.name.controller"
        of_all = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{secure}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{secure}.plain.sasl.jaas.config": plain,
            f"{secure}.scram-sha-256.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
            f"{secure}.scram-sha-512.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
            f"{secure}.ssl.keystore.type": "PEM",
            f"{secure}.ssl.keystore.location": str(self.authority.issue("node")),
            f"{secure}.ssl.truststore.type": "PEM",
            f"{secure}.ssl.truststore.location": str(self.authority.certificate_file),
            # A client that does not renew its proof is cut off.
            f"{secure}.connections.max.reauth.ms": "4000",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:node;User:ANONYMOUS",
        }
        self.quorum = StockQuorum(directory / "kafka", brokers=1, of_controllers=of_all, of_brokers=of_all)

    def allow(self) -> None:
        """Let the user ``shadow`` read the log and describe the quorum, and give it passwords of SCRAM."""
        admin = AdminClient({"bootstrap.servers": self.quorum.cluster.bootstrap})
        acls = [
            AclBinding(
                ResourceType.BROKER,
                "kafka-cluster",
                ResourcePatternType.LITERAL,
                "User:shadow",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for operation in (AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE)
        ]
        for done in admin.create_acls(acls).values():
            done.result(TIMEOUT_S)
        credentials = [
            UserScramCredentialUpsertion("shadow", ScramCredentialInfo(mechanism, 4096), PASSWORDS["shadow"].encode())
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        for credential in credentials:
            for done in admin.alter_user_scram_credentials([credential]).values():
                done.result(TIMEOUT_S)

    def reader(
        self, folder: Path, user: str, mechanism: str = "PLAIN", password: str = "", cluster_id: str | None = ""
    ) -> ShadowReader:
        """Begin to read as a user; ``cluster_id`` is the cluster's own by default, and None leaves it to be asked."""
        cluster_id = self.quorum.cluster.cluster_id if cluster_id == "" else cluster_id
        file = folder / "client.properties"
        file.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nsasl.username={user}\n"
            f"sasl.password={password or PASSWORDS[user]}\nssl.truststore.location={self.authority.certificate_file}\n"
        )
        client = client_of(config_in(str(file), "--command-config"))
        return ShadowReader(self.quorum.endpoints, client=client, cluster_id=cluster_id)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureStock]:
    stock = SecureStock(tmp_path_factory.mktemp("secure"))
    with stock.quorum:
        stock.allow()
        yield stock


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_shadow_reads_behind_tls_and_a_password(stock: SecureStock, tmp_path: Path, mechanism: str) -> None:
    with stock.reader(tmp_path, "shadow", mechanism) as reader:
        reader.wait_for(lambda item: isinstance(item, Batch), "a batch")


def test_a_proof_is_renewed_before_its_end(stock: SecureStock, tmp_path: Path) -> None:
    log = stock.quorum.node(101).log_file
    with stock.reader(tmp_path, "shadow") as reader:
        reader.wait_for_offset(0)
        begin, now_ms = len(log.read_text()), reader.batches[-1].time_ms
        reader.wait_for(lambda item: isinstance(item, Batch) and item.time_ms > now_ms + 10_000, "ten more seconds")
        offsets = [batch.base_offset for batch in reader.batches]
    assert offsets == sorted(set(offsets))
    assert "reauth" not in log.read_text()[begin:].lower()


def test_a_user_without_the_right_is_refused_once(stock: SecureStock, tmp_path: Path) -> None:
    log = stock.quorum.node(101).log_file
    begin = len(log.read_text())
    with stock.reader(tmp_path, "stranger") as reader:
        wait_until(lambda: reader.error, "a refusal")
    assert isinstance(reader.error, RefusedReaderError)
    assert "it needs CLUSTER_ACTION on the cluster" in str(reader.error)
    assert log.read_text()[begin:].count("ClusterAuthorizationException") <= 1


def test_controllers_of_another_cluster_are_refused(stock: SecureStock, tmp_path: Path) -> None:
    with stock.reader(tmp_path, "shadow", cluster_id="another") as reader:
        wait_until(lambda: reader.error, "a refusal")
    assert isinstance(reader.error, RefusedReaderError)
    assert "it belongs to another cluster" in str(reader.error)


def test_the_clusters_id_is_told_only_to_an_admin(stock: SecureStock, tmp_path: Path) -> None:
    with stock.reader(tmp_path, "shadow", cluster_id=None) as reader:
        wait_until(lambda: reader.error, "a refusal")
    assert isinstance(reader.error, RefusedReaderError)
    assert "expected --cluster-id, or ALTER on the cluster" in str(reader.error)
    with stock.reader(tmp_path, "node", cluster_id=None) as reader:
        reader.wait_for_offset(0)
    assert reader.cluster_id == stock.quorum.cluster.cluster_id


def test_a_wrong_password_is_refused_without_being_shown(stock: SecureStock, tmp_path: Path) -> None:
    with stock.reader(tmp_path, "shadow", password="canary") as reader:
        wait_until(lambda: reader.error, "a refusal")
    assert isinstance(reader.error, RefusedReaderError)
    assert "canary" not in str(reader.error)
