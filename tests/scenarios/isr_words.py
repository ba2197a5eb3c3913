"""The words of a story for a leader that asks for several ISRs at once, or wrote an ISR itself."""

from typing import Any

from state.level import NEWEST_LEVEL
from tests.scenarios.arguments import epoch_in, ids, partition_of, request_id_in
from tests.scenarios.script import Script
from tests.scenarios.story import Command

_FENCES = {"broker-epoch", "leader-epoch", "partition-epoch", "request-id"}


def isr_changes(script: Script, command: Command) -> None:
    """Ask for several ISRs at once: ``isr-changes 1 t-0=1,2 u-3=1``; fences of all rows as for ``isr-change``."""
    broker, given = int(command.arguments[0]), command.options
    rows: dict[str, list[Any]] = {}
    for place, isr in given.items():
        if place not in _FENCES:
            name, number = partition_of(place)
            held = script.partition(name, number)
            leader_epoch = epoch_in(given.get("leader-epoch"), held.leader_epoch)
            partition_epoch = epoch_in(given.get("partition-epoch"), held.partition_epoch)
            rows.setdefault(name, []).append([number, leader_epoch, partition_epoch, ids(isr)])
    script.write(
        "alter_isrs",
        broker=broker,
        broker_epoch=script.broker_epoch(broker, given.get("broker-epoch")),
        topics=[{"topic": name, "partitions": some} for name, some in rows.items()],
        **request_id_in(command),
    )


def isr_written(script: Script, command: Command) -> None:
    """Report an ISR that a leader wrote into ZooKeeper: ``isr-written t-0 1,3 by=1 leader-epoch=0 zxid=205``."""
    place, isr = command.arguments
    name, number = partition_of(place)
    held, given = script.partition(name, number), command.options
    script.write(
        "isr_written",
        topic=name,
        partition=number,
        broker=int(given.get("by", held.leader)),
        leader_epoch=epoch_in(given.get("leader-epoch"), held.leader_epoch),
        partition_epoch=held.partition_epoch,
        isr=ids(isr),
        **({"zxid": int(given["zxid"])} if "zxid" in given else {}),
        **request_id_in(command),
    )


def eligible(script: Script, command: Command) -> None:
    """Raise the level, and turn eligible leader replicas on or off: ``eligible on``, ``eligible off``."""
    version = {"on": "1", "off": "0"}[command.arguments[0]]
    if version == "1":
        script.quiet, script.gateway_level = True, NEWEST_LEVEL
        script.claim(script.controller_epoch + 1, level=NEWEST_LEVEL)
        script.write("raise_level", level=NEWEST_LEVEL)
    script.quiet = False
    script.write("alter_config", entity="cluster", config={"eligible.leader.replicas.version": version})
