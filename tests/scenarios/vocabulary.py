"""The words of a story: each writes events, and its docstring shows how it is used.

Everywhere: replicas and ISRs are ``1,2,3`` (``none`` for an empty list), a partition is ``topic-number``,
and ``request-id=`` puts a request id on the event.
"""

from collections.abc import Callable
from typing import Any

from tests.scenarios.arguments import duration_ms, epoch_in, ids, partition_of, request_id_in, settings_in
from tests.scenarios.gateway_words import GATEWAY_WORDS
from tests.scenarios.isr_words import isr_changes, isr_written
from tests.scenarios.log_words import LOG_WORDS
from tests.scenarios.script import ALIVE, Script
from tests.scenarios.starting import beats, register_broker, registration
from tests.scenarios.story import Command

Word = Callable[[Script, Command], None]


def brokers(script: Script, command: Command) -> None:
    """Start brokers, and before the first ones a controller: ``brokers 1 2 3 racks=a,b,a behind=gateway``.

    With ``log-dir=/d`` each of them has that directory.
    """
    script.quiet = True
    if command.options.get("behind") == "gateway":
        script.kraft_brokers.update(map(int, command.arguments))
    script.claim_if_first()
    racks = command.options.get("racks", "").split(",")
    for place, broker in enumerate(map(int, command.arguments)):
        dirs = {"log_dirs": command.options["log-dir"].split(",")} if "log-dir" in command.options else {}
        register_broker(script, broker, rack=racks[place] if place < len(racks) and racks[place] else None, **dirs)
        beats(script, broker)
    script.introduced.append("brokers")


def topic(script: Script, command: Command) -> None:
    """Create a topic with one list of replicas per partition: ``topic t 1,2,3 2,3,1 isr=1,2 min.insync.replicas=2``."""
    script.quiet = True
    name, *listed = command.arguments
    assignment = {str(number): ids(text) for number, text in enumerate(listed)}
    script.write("create_topic", topic=name, assignment=assignment, config=settings_in(command.options))
    if "isr" in command.options:
        for number in range(len(listed)):
            isr_change(script, Command("isr-change", (f"{name}-{number}",), {"isr": command.options["isr"]}, ""))
    script.introduced.append(name)


def settings(script: Script, command: Command) -> None:
    """Set the settings of the next controller: ``settings broker.session.timeout.ms=3000``."""
    script.settings |= command.options


def claim(script: Script, command: Command) -> None:
    """Let another controller take over: ``claim``, or ``claim epoch=1`` for a late one."""
    epoch = int(command.options.get("epoch", script.controller_epoch + 1))
    script.claim(epoch, **request_id_in(command))


def tick(script: Script, command: Command) -> None:
    """Advance time: ``tick 9s``, ``tick 500ms``; brokers that are not silenced heartbeat meanwhile."""
    script.pass_time(duration_ms(command.arguments[0]) if command.arguments else 0)


def silence(script: Script, command: Command) -> None:
    """Stop brokers' heartbeats: ``silence 1 2``."""
    for broker in map(int, command.arguments):
        script.beating.pop(broker, None)


def heartbeat(script: Script, command: Command) -> None:
    """Send a heartbeat, and continue with it: ``heartbeat 1 [want-fence] [want-shutdown] epoch=stale``.

    ``offline-dirs=A,B`` says once that these log directories failed, ``cordoned-dirs=A`` which are cordoned.
    """
    first, *wished = command.arguments
    broker, wishes = int(first), {wish.replace("-", "_"): True for wish in wished}
    fields: dict[str, Any] = {"broker_epoch": script.broker_epoch(broker, command.options.get("epoch"))}
    if "offline-dirs" in command.options:
        fields["offline_log_dirs"] = command.options["offline-dirs"].split(",")
    if "cordoned-dirs" in command.options:
        fields["cordoned_log_dirs"] = [one for one in command.options["cordoned-dirs"].split(",") if one]
    script.beat(broker, ALIVE | wishes, **fields, **request_id_in(command))
    script.beating[broker] = ALIVE | wishes | {"want_shutdown": False}


def register(script: Script, command: Command) -> None:
    """Register, without a heartbeat: ``register 4 rack=a``, ``register 4 incarnation=same listener=h:9092``.

    ``behind-gateway`` registers as a broker of Kafka 4 does, and ``log-dir=A,B`` names its directories. A refused
    registration changes nothing for the broker that has the id.
    """
    broker = int(command.arguments[0])
    former = script.broker_epoch(broker)
    register_broker(script, broker, **registration(command), **request_id_in(command))
    if script.broker_epoch(broker) != former:
        silence(script, Command("silence", (str(broker),), {}, ""))


def restart(script: Script, command: Command) -> None:
    """Start a broker as a new incarnation that heartbeats: ``restart 1 rack=a``, ``zxid=210``, ``behind-gateway``.

    ``restart 1 clean`` says that the former incarnation shut down cleanly.
    """
    broker = int(command.arguments[0])
    register_broker(script, broker, **registration(command))
    beats(script, broker)


def shutdown(script: Script, command: Command) -> None:
    """Ask for a controlled shutdown: ``shutdown 1 epoch=stale``."""
    broker = int(command.arguments[0])
    epoch = script.broker_epoch(broker, command.options.get("epoch"))
    script.write("controlled_shutdown", broker=broker, broker_epoch=epoch, **request_id_in(command))


def unregister(script: Script, command: Command) -> None:
    """Forget a broker that will not come back: ``unregister 1``."""
    silence(script, command)
    script.write("broker_unregister", broker=int(command.arguments[0]), **request_id_in(command))


def connection_lost(script: Script, command: Command) -> None:
    """Lose the connection to a broker: ``connection-lost 1``."""
    broker = int(command.arguments[0])
    script.write(
        "broker_connection_lost", broker=broker, broker_epoch=script.broker_epoch(broker), **request_id_in(command)
    )


def isr_change(script: Script, command: Command) -> None:
    """Ask for an ISR as the leader would: ``isr-change t-0 isr=1,2``.

    Fences are correct unless given: ``from=2 broker-epoch=stale leader-epoch=stale
    partition-epoch=newer isr-epochs=5,stale recovery=RECOVERING``. Here and below ``topic-id=current``
    names the topic by its id too, ``topic-id=stale`` by the id of the previous topic of that name.
    """
    name, number = partition_of(command.arguments[0])
    held, given = script.partition(name, number), command.options
    broker, isr = int(given.get("from", max(held.leader, 0))), ids(given["isr"])
    fields: dict[str, Any] = {}
    if "isr-epochs" in given:
        listed = given["isr-epochs"].split(",")
        # In a list that is too long, the last epochs belong to no broker.
        fields["isr_epochs"] = [
            script.broker_epoch(isr[min(place, len(isr) - 1)], None if text == "current" else text)
            for place, text in enumerate(listed)
        ]
    if "recovery" in given:
        fields["leader_recovery_state"] = given["recovery"]
    script.write(
        "alter_isr",
        **script.topic_fields(name, given.get("topic-id")),
        partition=number,
        broker=broker,
        broker_epoch=script.broker_epoch(broker, given.get("broker-epoch")),
        leader_epoch=epoch_in(given.get("leader-epoch"), held.leader_epoch),
        partition_epoch=epoch_in(given.get("partition-epoch"), held.partition_epoch),
        isr=isr,
        **fields,
        **request_id_in(command),
    )


def create_topic(script: Script, command: Command) -> None:
    """Create a topic: ``create-topic t partitions=2 factor=3``, or ``create-topic t 0=1,2,3 1=2,3,1``.

    Settings follow as ``min.insync.replicas=2``; ``validate-only`` creates nothing.
    """
    given = command.options
    fields: dict[str, Any] = {"topic": command.arguments[0] if command.arguments else "", **request_id_in(command)}
    fields |= {field: int(given[key]) for key, field in _SIZES.items() if key in given}
    assignment = {key: ids(value) for key, value in given.items() if key.isdecimal()}
    if assignment:
        fields["assignment"] = assignment
    validate_only = "validate-only" in command.arguments
    script.write("create_topic", **fields, config=settings_in(given), validate_only=validate_only)


_SIZES = {"partitions": "partitions", "factor": "replication_factor"}


def delete_topic(script: Script, command: Command) -> None:
    """Delete a topic: ``delete-topic t``."""
    script.write("delete_topic", topic=command.arguments[0], **request_id_in(command))


def create_partitions(script: Script, command: Command) -> None:
    """Add partitions up to a total: ``create-partitions t 3``, ``create-partitions t 3 1,2,3 2,3,1``."""
    name, total, *listed = command.arguments
    given = ({"assignment": [ids(text) for text in listed]} if listed else {}) | request_id_in(command)
    script.write("create_partitions", topic=name, total=int(total), **given)


def reassign(script: Script, command: Command) -> None:
    """Move a partition to other replicas: ``reassign t-0 4,5,6``."""
    name, number = partition_of(command.arguments[0])
    given = {"replicas": ids(command.arguments[1])} | request_id_in(command)
    script.write("alter_reassignment", topic=name, partition=number, **given)


def cancel(script: Script, command: Command) -> None:
    """Cancel a partition's reassignment: ``cancel t-0``."""
    name, number = partition_of(command.arguments[0])
    script.write("alter_reassignment", topic=name, partition=number, replicas=None, **request_id_in(command))


def elect(script: Script, command: Command) -> None:
    """Request elections: ``elect preferred t-0 t-1``, ``elect unclean all``."""
    kind, *named = command.arguments
    pairs = map(partition_of, [text for text in named if text != "all"])
    listed = [{"topic": name, "partition": number} for name, number in pairs] or None
    script.write("elect_leaders", election_type=kind, partitions=listed, **request_id_in(command))


def raw(script: Script, command: Command) -> None:
    """Put a text on the bus as it is: ``raw {"kind":"tick"}``; or bytes: ``raw hex:fffe``."""
    given = command.rest
    script.write_raw(bytes.fromhex(given[4:]) if given.startswith("hex:") else given.encode())


def describe(script: Script, command: Command) -> None:
    """Show partitions, brokers or ACLs: ``describe``, ``describe t``, ``describe brokers``, ``describe acls``."""
    script.described += command.arguments or ("",)


_ALL: tuple[Word, ...] = (
    brokers,
    topic,
    settings,
    claim,
    tick,
    silence,
    heartbeat,
    register,
    restart,
    shutdown,
    unregister,
    connection_lost,
    *GATEWAY_WORDS,
    isr_change,
    isr_changes,
    isr_written,
    *LOG_WORDS,
    create_topic,
    delete_topic,
    create_partitions,
    reassign,
    cancel,
    elect,
    raw,
    describe,
)
WORDS = {word.__name__.replace("_", "-"): word for word in _ALL}
