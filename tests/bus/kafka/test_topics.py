"""Topics of a bus on a real Kafka: refused if they could lose or reject writes."""

import threading
import time
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from structlog.testing import capture_logs

from brokers.launch.kafka.tools import CONFIGS, run_tool
from bus.interface import BusError
from bus.kafka import topics
from bus.kafka.bus import KafkaBus
from bus.kafka.claims import newest_claims
from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.transaction import Transaction
from bus.open_bus import open_bus
from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS
from isrflow.kafka.address import parse
from isrflow.kafka.seqs import seq_of
from state.found import Found, found_in
from streaming.checkpoint import is_decided_to
from tests.support.waiting import TIMEOUT_S, wait_until

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
MIB = 1024 * 1024
ALL = 2**62


def aborted(transaction: Transaction) -> None:
    transaction.flush()
    transaction.producer.abort_transaction(20)


@pytest.mark.parametrize("url", ["kafka://::1:9092", "kafka://a:1/", "kafka://a"])
def test_an_invalid_address_is_a_bus_error(url: str) -> None:
    with pytest.raises(BusError, match="expected kafka://"):
        open_bus(url)


@pytest.mark.kafka_bus
def test_offsets_that_do_not_arrive_in_time_are_an_error(
    monkeypatch: pytest.MonkeyPatch, kafka_url: str, bus: KafkaBus
) -> None:
    def never(self: Connection, *asked: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(Connection, "ask_offset", never)
    with pytest.raises(BusError, match=f"{kafka_url}: no answer in 1 s"):
        Connection(bus.address, timeout_s=1).end_offset(bus.address.events)


@pytest.mark.kafka_bus
def test_a_topic_that_has_no_leader_yet_is_waited_for(kafka_servers: str, bus: KafkaBus) -> None:
    topic = f"{bus.address.prefix}.late"
    admin = AdminClient({"bootstrap.servers": kafka_servers})
    making = threading.Timer(0.3, admin.create_topics, [[NewTopic(topic)]])
    making.start()
    assert Connection(bus.address).end_offset(topic) == 0
    making.join()


@pytest.mark.kafka_bus
def test_a_state_that_changes_faster_than_it_is_read_is_given_up(
    monkeypatch: pytest.MonkeyPatch, bus: KafkaBus
) -> None:
    ends = count(1)
    monkeypatch.setattr("bus.kafka.state_reader.READ_WHOLE_TIMEOUT_MS", 100)
    monkeypatch.setattr(Connection, "end_offset", lambda self, topic: next(ends))
    monkeypatch.setattr(LogReader, "peek", lambda self, end: time.sleep(0.01))
    with pytest.raises(BusError, match="changes faster than it can be read"):
        bus.image()


@pytest.mark.kafka_bus
@pytest.mark.parametrize(
    ("topic", "settings", "said"),
    [
        ("state", {"cleanup.policy": "delete"}, "cleanup.policy = delete, but needs compact"),
        ("state", {"cleanup.policy": "compact,delete"}, "cleanup.policy = compact,delete, but needs compact"),
        ("controller", {}, "cleanup.policy = delete, but needs compact"),
        ("events", {"cleanup.policy": "compact"}, "cleanup.policy = compact, but needs delete"),
        ("decisions", {}, f"max.message.bytes = 1048588, but needs at least {16 * MIB}"),
    ],
)
def test_a_topic_with_other_settings_is_refused(
    kafka_url: str, topic: str, settings: dict[str, str], said: str
) -> None:
    name, large = f"{kafka_url.rpartition('/')[2]}.{topic}", {"max.message.bytes": str(32 * MIB)} if settings else {}
    made = NewTopic(name, 1, config=settings | large)
    admin = AdminClient({"bootstrap.servers": kafka_url.split("/")[2]})
    admin.create_topics([made])[name].result(TIMEOUT_S)
    wait_until(lambda: name in admin.list_topics(timeout=TIMEOUT_S).topics, "the topic to be listed")
    with pytest.raises(BusError, match=f"topic {name} has {said}"):
        open_bus(kafka_url)


@pytest.mark.kafka_bus
def test_an_offset_after_all_decided_events_may_also_follow_markers_of_transactions(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_decided_to(bus, 0)
    assert not is_decided_to(bus, 1)
    bus.publish([EVENT] * 3)
    assert not is_decided_to(bus, 3)
    # The claim is at offset 3 and its transaction's marker at 4; the next claim takes 5 and 6.
    bus.claim("a", {}, 1)
    bus.claim("b", {}, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "end", aborted)
        bus.claim("aborted", {}, 1)
    epoch = bus.claim("c", {}, 1).controller_epoch
    for through, places in (
        (seq_of(2), {3}),
        (seq_of(3), {4, 5}),
        (seq_of(5), {6, 7, 8, 9}),
        (seq_of(9), {10, 11}),
    ):
        bus.commit(epoch, through, [], [])
        assert {place for place in range(14) if is_decided_to(bus, place)} == places


@pytest.mark.parametrize(("factor", "in_sync"), [(1, "1"), (2, "1"), (3, "2"), (5, "4")])
def test_an_acknowledged_record_is_on_all_replicas_but_one(factor: int, in_sync: str) -> None:
    for topic in topics.wanted_topics(parse("kafka://127.0.0.1:1"), factor).values():
        assert (topic.replication_factor, topic.config["min.insync.replicas"]) == (factor, in_sync)


@pytest.mark.kafka_bus
def test_topics_are_created_with_bounded_segments(bus: KafkaBus, kafka_url: str) -> None:
    admin = AdminClient({"bootstrap.servers": bus.address.servers})
    listed = admin.list_topics(timeout=TIMEOUT_S)
    for name in (bus.address.events, bus.address.decisions, bus.address.state, bus.address.controller):
        partitions = listed.topics[name].partitions
        assert [len(partition.replicas) for partition in partitions.values()] == [1], "of one broker"
    for name in (bus.address.state, bus.address.controller):
        assert settings_of(admin, name, "segment.ms", "segment.bytes", "min.insync.replicas") == [
            "600000",
            str(64 * MIB),
            "1",
        ]
    for name in wanted_names(bus):
        assert settings_of(admin, name, "compression.type") == ["producer"], "and not the brokers' setting"
    with pytest.raises(BusError, match=r"(?i)replication factor"):
        open_bus(f"{kafka_url}-of-two", replication_factor=2)


def wanted_names(bus: KafkaBus) -> list[str]:
    return list(topics.wanted_topics(bus.address, 1))


def settings_of(admin: AdminClient, topic: str, *names: str) -> list[str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return [found[name].value for name in names]


@pytest.mark.kafka_bus
def test_a_claim_says_how_much_it_found_undecided(bus: KafkaBus) -> None:
    bus.publish([EVENT])
    first = bus.claim("a", {}, 5)
    bus.commit(first.controller_epoch, first.seq, [], [])
    bus.publish([EVENT])
    second = bus.claim("b", {}, 6)
    wait_until(lambda: len(bus.read(0, ALL)) == 4, "the events to be readable")
    entered_ms = {entry.seq: entry.entered_ms for entry in bus.read(0, ALL)}[second.seq]
    assert entered_ms is not None
    assert newest_claims(Connection(bus.address)).found[-1] == Found(first.seq, second.seq, entered_ms)
    assert found_in(entry[:4] for entry in bus.read(0, ALL))[-1] == Found(first.seq, second.seq, entered_ms)


@pytest.mark.kafka_bus
def test_a_negative_time_is_before_all_events_and_not_one_of_kafkas_special_times(bus: KafkaBus) -> None:
    bus.publish([EVENT] * 2)
    for time_ms in (-4, -3, -2, -1, 0, -(10**20)):
        assert bus.seq_at(time_ms) == 0, time_ms
    assert bus.seq_at(10**20) == bus.last_seq()


@pytest.mark.kafka_bus
def test_a_topic_that_lacks_a_wanted_setting_is_used_with_a_warning(kafka_url: str) -> None:
    name = f"{kafka_url.rpartition('/')[2]}.events"
    config = {"retention.ms": "3600000", "retention.bytes": "-1", "max.message.bytes": str(16 * MIB)}
    config |= {"compression.type": "zstd"}
    admin = AdminClient({"bootstrap.servers": kafka_url.split("/")[2]})
    admin.create_topics([NewTopic(name, 1, config=config)])[name].result(TIMEOUT_S)
    wait_until(lambda: name in admin.list_topics(timeout=TIMEOUT_S).topics, "the topic to be listed")
    with capture_logs() as told:
        open_bus(kafka_url).close()
    assert [(one["setting"], one["is_now"]) for one in told] == [
        ("retention.ms", "3600000"),
        ("message.timestamp.type", "CreateTime"),
        ("compression.type", "zstd"),
    ]
    servers = kafka_url.split("/")[2]
    script, *options = told[2]["mend"].split()
    assert (script, options[:2]) == ("kafka-configs.sh", ["--bootstrap-server", servers])
    fetch(KAFKA_VERSIONS[KAFKA_VERSION].jars)
    run_tool(CONFIGS, servers, options[2:])
    assert settings_of(admin, name, "compression.type") == ["producer"]
