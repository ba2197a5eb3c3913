"""What brokers know of the log directories of replicas agrees with what the rules go by, after every event."""

from collections.abc import Sequence

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.kraft.metadata.uuids import uuid_of
from controller_logic.replay import first_states, logged
from controller_logic.step import step
from state.broker import Broker
from state.canonical import number
from state.cluster import State
from state.decisions import decode
from state.directories import directory_of
from state.ids import NO_LEADER
from state.log_directory import MIGRATING, UNASSIGNED, is_online
from state.part import part_of
from state.partition import Partition
from state.policy import Policy
from tests.histories.recorded import all_histories
from tests.scenarios.story import parse
from tests.scenarios.telling import scenes

UNKNOWN = {MIGRATING, UNASSIGNED}
SLOW_MACHINE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check_all(events: Sequence[tuple[int, bytes]]) -> None:
    """Decide events, write the decisions into the metadata log, and compare after each event."""
    state, image = first_states(1)[0], MetadataImage()
    for event in logged(events):
        outcome = step(state, [event], Policy())
        state = outcome.state
        decisions = [decode(body) for _, _, body in number(map(part_of, outcome.decisions))]
        if decisions:
            image = translate(image, decisions).image
        check(state, image, event.seq)


def check(state: State, image: MetadataImage, seq: int) -> None:
    for name in state.topics.names():
        topic = state.topics.get(name)
        assert topic is not None
        held = image.topics.get(topic.topic_id)
        for partition in topic.partitions if held is not None else ():
            known = held.partitions[partition.partition]  # type: ignore[union-attr]
            for replica, directory in zip(known.replicas, known.directories, strict=True):
                where = f"event {seq}: replica {replica} of {name}-{partition.partition}"
                assert known.replicas == partition.replicas, where
                assert directory in expected(state, image, partition, replica), where
            leader = state.cluster.brokers.get(partition.leader)
            if partition.leader != NO_LEADER and leader is not None:
                assert is_online(directory_of(partition, leader.broker), leader.log_dirs), f"event {seq}: {name}"


def is_alone(broker: Broker) -> bool:
    return len(broker.log_dirs) == 1 and not broker.offline_log_dirs


def any_of(image: MetadataImage) -> set[str]:
    """Return every directory in the metadata log: an unregistered broker's replica may have had any of them."""
    return {one for held in image.topics.values() for p in held.partitions.values() for one in p.directories}


def expected(state: State, image: MetadataImage, partition: Partition, replica: int) -> set[str]:
    """Return the directories that the metadata log may have for a replica."""
    directory = directory_of(partition, replica)
    broker = state.cluster.brokers.get(replica)
    # The state remembers where a lost log was. Brokers know the only directory, where the replica is made again.
    is_elsewhere = replica in partition.lost_logs and (broker is None or is_alone(broker))
    if directory and not is_elsewhere:
        return {uuid_of(directory)}
    if broker is None:
        return any_of(image)
    return {uuid_of(broker.log_dirs[0])} if is_alone(broker) else UNKNOWN


def test_the_recorded_history_agrees() -> None:
    [history] = [history for history in all_histories() if history.name == "log-dirs-several"]
    check_all(history.events)


UNREGISTERED = "unregister 1\nrestart 1 behind-gateway log-dir={}"
RESTARTED = "connection-lost 1\nrestart 1 behind-gateway log-dir={}"
replicas = st.permutations([1, 2, 3]).flatmap(lambda ids: st.integers(1, 3).map(lambda n: ",".join(map(str, ids[:n]))))
dirs = st.sampled_from(["A", "B", "A,B", "B,C", "A,B,C", "C"])
commands = st.one_of(
    st.builds("assign 1 {} t-{}".format, st.sampled_from("ABC"), st.integers(0, 2)),
    st.builds("assign 1 {} t-{}".format, st.sampled_from("ABC"), st.integers(0, 2)),
    st.builds("heartbeat 1 offline-dirs={}".format, dirs),
    st.builds(RESTARTED.format, dirs),
    st.builds("connection-lost 1\nregister 1 incarnation=same behind-gateway log-dir={}\nheartbeat 1".format, dirs),
    st.builds(UNREGISTERED.format, dirs),
    st.builds("reassign t-{} {}".format, st.integers(0, 2), replicas),
    st.builds("isr-change t-{} isr={}".format, st.integers(0, 2), replicas),
    st.sampled_from(
        [
            "elect preferred all",
            "elect unclean all",
            "create-partitions t 4 1,2",
            "silence 1\ntick 12s",
            "heartbeat 1 want-fence",
            "heartbeat 1",
            "shutdown 1",
            "tick 2s",
        ]
    ),
)


@SLOW_MACHINE
@example("A", ["reassign t-0 1", UNREGISTERED.format("B")])
@example("A", ["reassign t-0 1", UNREGISTERED.format("B"), UNREGISTERED.format("C")])
@example("A", ["reassign t-0 1", UNREGISTERED.format("B"), RESTARTED.format("A,B")])
@example("A", ["reassign t-0 1", UNREGISTERED.format("B"), RESTARTED.format("A,B"), "elect unclean all"])
@given(dirs, st.lists(commands, max_size=14))
def test_random_histories_agree(first: str, drawn: list[str]) -> None:
    scene = [
        "gateway 9",
        "brokers 2 3 behind=gateway",
        f"restart 1 behind-gateway log-dir={first}",
        "topic t 1,2 2,1 1,3",
    ]
    text = "\n".join(["# Random.", *scene, *drawn, "----", ""])
    script = [event for scene in scenes(parse("random", text)) for event in scene.written]
    check_all([(event.seq, event.raw) for event in script])
