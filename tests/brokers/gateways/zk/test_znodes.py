"""Znodes: what brokers of Kafka 3.9 wrote is read, and what is written is what Kafka reads."""

import json
import re

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.znodes import ZnodeError
from state.registration import Listener
from tests.brokers.gateways.zk.decided import ID, led, topic

# As a broker of Kafka 3.9.1 wrote it.
BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","REPL":"SSL"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:22091","REPL://[::1]:23091"],"jmx_port":-1,"port":22091,'
    b'"host":"127.0.0.1","version":5,"timestamp":"1760000000000","rack":"r"}'
)


def test_a_broker_is_read() -> None:
    found = znodes.broker_of("/brokers/ids/1", BROKER, 25)
    assert (found.broker, found.epoch, found.rack) == (1, 25, "r")
    assert found.listeners == (Listener("PLAINTEXT", "127.0.0.1", 22_091), Listener("REPL", "::1", 23_091, "SSL"))


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("/brokers/ids/1", b"{", "/brokers/ids/1: "),
        ("/brokers/ids/1", b'{"endpoints":["nowhere"]}', "endpoints: 'nowhere' is not NAME://HOST:PORT"),
        ("/brokers/ids/1", b'{"endpoints":[]}', "endpoints: at least one is expected"),
        ("/brokers/ids/x", b'{"endpoints":["A://b:1"]}', "a number is expected at the end"),
    ],
)
def test_what_is_no_broker_is_named(path: str, data: bytes, said: str) -> None:
    with pytest.raises(ZnodeError, match=re.escape(said)):
        znodes.broker_of(path, data, 1)


def test_a_topic_is_written_as_kafka_reads_it() -> None:
    view = ClusterView()
    view.apply(led(adding_replicas=(3,), partition=1))
    view.apply(led())
    view.apply(topic())
    text = znodes.topic_text(view.topics["t"])
    assert json.loads(text) == {
        "version": 3,
        "partitions": {"0": [1, 2, 3], "1": [1, 2, 3]},
        "adding_replicas": {"1": [3]},
        "removing_replicas": {},
        "topic_id": ID,
    }
    assert znodes.topic_of("/brokers/topics/t", text).partitions == {0: (1, 2, 3), 1: (1, 2, 3)}


def test_a_partitions_state_is_written_as_kafka_reads_it() -> None:
    text = znodes.state_text(led(2, 5, 9, isr=(2, 3)), 7)
    assert json.loads(text) == {"version": 1, "leader": 2, "leader_epoch": 5, "controller_epoch": 7, "isr": [2, 3]}
    assert znodes.state_of("/state", text).isr == (2, 3)
    assert znodes.state_path(Place("t", 4)) == "/brokers/topics/t/partitions/4/state"


def test_the_controller_is_written_as_kafka_reads_it_and_its_epoch_is_read() -> None:
    text = znodes.controller_text(100, 17)
    assert json.loads(text) == {"version": 2, "brokerid": 100, "timestamp": "17", "kraftControllerEpoch": -1}
    assert znodes.controller_of(text).brokerid == 100
    assert znodes.epoch_of(b"12") == 12
    with pytest.raises(ZnodeError, match="/controller_epoch: b'' is not a number"):
        znodes.epoch_of(b"")


def test_the_clusters_id_is_written_as_kafka_reads_it() -> None:
    text = znodes.cluster_id_text("an-id")
    assert json.loads(text) == {"version": "1", "id": "an-id"}
    assert znodes.cluster_id_of(text) == "an-id"


def test_settings_and_their_notes_are_written_as_kafka_reads_them() -> None:
    assert json.loads(znodes.config_text({"a": "1"})) == {"version": 1, "config": {"a": "1"}}
    assert znodes.config_of("/config/topics/t", znodes.config_text({"a": "1"})) == {"a": "1"}
    assert json.loads(znodes.config_change_text("t")) == {"version": 2, "entity_path": "topics/t"}


def test_reassignments_are_read() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,1]}]}'
    assert znodes.reassignments_of(data) == {Place("t", 0): (3, 1)}
    with pytest.raises(ZnodeError, match="/admin/reassign_partitions"):
        znodes.reassignments_of(b'{"partitions":[{"topic":"t"}]}')


def test_a_leader_that_recovers_is_written_as_one() -> None:
    assert "leader_recovery_state" not in znodes.state_text(led(), 7).decode()
    decision = led(isr=(1,), leader_recovery_state="RECOVERING")
    assert znodes.state_of("", znodes.state_text(decision, 7)).leader_recovery_state == znodes.RECOVERING


def test_brokers_that_write_states_themselves_find_no_recovery() -> None:
    decision = led(isr=(1,), leader_recovery_state="RECOVERING")
    assert b"leader_recovery_state" not in znodes.state_text(decision, 7, is_marked=True)


def test_the_next_producer_id_is_the_one_after_the_block() -> None:
    text = znodes.producer_ids_text(100, 4_000, 5_000)
    assert json.loads(text) == {"version": 1, "broker": 100, "block_start": "4000", "block_end": "4999"}
    assert znodes.next_producer_id_of(text) == 5_000
