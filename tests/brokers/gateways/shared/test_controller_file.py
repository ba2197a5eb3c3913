"""A controller's server.properties as the settings of a gateway."""

from pathlib import Path

import pytest

from brokers.gateways.kraft.settings import SOURCE, identity_of
from conf.layers import SettingsError

CONTROLLER = r"""
process.roles=controller
node.id=3000
controller.quorum.voters=3000@c1:9093,3001@c2:9093
controller.listener.names=CTL
listeners=PLAINTEXT://:9092,CTL://:9093
listener.security.protocol.map=PLAINTEXT:PLAINTEXT, CTL:SSL
listener.name.ctl.ssl.keystore.location=/etc/kafka/controller.pem
listener.name.plaintext.ssl.keystore.location=/etc/kafka/broker.pem
ssl.keystore.location=/etc/kafka/all.pem
ssl.keystore.password=secret
metadata.log.dir=/var/kafka
num.io.threads=8
"""


def test_a_gateway_takes_a_controllers_place_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(CONTROLLER)
    settings = SOURCE.load(file, ["cluster.id=q1Sh-9_ISia_zwGINzRvyQ"])
    identity = identity_of(settings)
    assert (identity.gateway, identity.place, identity.directory) == (3000, ("0.0.0.0", 9093), Path("/var/kafka"))
    assert (settings.security_protocol, settings.ssl_keystore_location) == ("SSL", "/etc/kafka/controller.pem")


def test_what_a_gateway_does_not_read_is_named_without_values(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(CONTROLLER)
    assert SOURCE.layers.left_out(file) == [
        "listener.name.plaintext.ssl.keystore.location",
        "num.io.threads",
        "process.roles",
        "ssl.keystore.location",
        "ssl.keystore.password",
    ]


def test_the_directory_of_kafkas_own_controller_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    file = tmp_path / "server.properties"
    file.write_text(CONTROLLER.replace("/var/kafka", str(tmp_path)))
    with pytest.raises(SettingsError, match=r"metadata\.log\.dir: .* holds the storage of one of Kafka's own nodes"):
        identity_of(SOURCE.load(file, ["cluster.id=q1Sh-9_ISia_zwGINzRvyQ"]))


def test_a_wrong_value_names_the_file_and_the_setting(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=first\n")
    with pytest.raises(SettingsError, match=r"server\.properties: node\.id: expected int"):
        SOURCE.load(file)
