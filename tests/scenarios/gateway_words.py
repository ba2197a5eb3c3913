"""The words of stories for gateways, for their requests, and for what only brokers behind gateways report."""

from typing import Any

from state.level import NEWEST_LEVEL
from tests.scenarios.arguments import ids, partition_of, request_id_in, settings_in
from tests.scenarios.script import Script
from tests.scenarios.story import Command


def gateway(script: Script, command: Command) -> None:
    """Start a KRaft gateway, which is heard from then on: ``gateway 9``. The first one leads."""
    script.quiet = True
    script.claim_if_first()
    number = int(command.arguments[0])
    fields = {"gateway": number, "incarnation": f"g{number}", "voters": [number], "level": script.gateway_level}
    script.write("gateway_started", **fields)
    script.gateways[number] = None


def hears(script: Script, command: Command) -> None:
    """Let a gateway's heartbeats name the brokers that it hears: ``hears 9 1,2``, ``hears 9 none``."""
    script.gateways[int(command.arguments[0])] = ids(command.arguments[1])


def silence_gateway(script: Script, command: Command) -> None:
    """Stop a gateway's heartbeats: ``silence-gateway 9``."""
    script.gateways.pop(int(command.arguments[0]), None)


def assign(script: Script, command: Command) -> None:
    """Report in which log directory a broker's replicas are: ``assign 1 A t-0 t-1``; fences as for ``isr-change``."""
    broker = int(command.arguments[0])
    by_topic: dict[str, list[int]] = {}
    for name, number in map(partition_of, command.arguments[2:]):
        by_topic.setdefault(name, []).append(number)
    for name, numbers in by_topic.items():
        script.write(
            "assign_replicas_to_dirs",
            **script.topic_fields(name, command.options.get("topic-id")),
            broker=broker,
            broker_epoch=script.broker_epoch(broker, command.options.get("broker-epoch")),
            directory=command.arguments[1],
            partitions=numbers,
            **request_id_in(command),
        )


def config(script: Script, command: Command) -> None:
    """Set or (with nothing behind ``=``) remove settings: ``config cluster k=v``, ``config topic t k=``.

    ``quorum-epoch=1`` asks as a gateway does that has led since that epoch.
    """
    entity, *named = command.arguments
    fields: dict[str, Any] = {"name": named[0]} if named else {}
    if "quorum-epoch" in command.options:
        fields["quorum_epoch"] = int(command.options["quorum-epoch"])
    values = {key: value or None for key, value in settings_in(command.options).items()}
    script.write("alter_config", entity=entity, **fields, config=values, **request_id_in(command))


def eligible(script: Script, command: Command) -> None:
    """Raise the level, and turn eligible leader replicas on or off: ``eligible on``, ``eligible off``."""
    script.quiet = True
    if command.arguments == ("on",):
        script.gateway_level = NEWEST_LEVEL
        script.claim(script.controller_epoch + 1, level=NEWEST_LEVEL)
        script.write("raise_level", level=NEWEST_LEVEL)
    version = {"on": "1", "off": "0"}[command.arguments[0]]
    script.quiet = False
    script.write("alter_config", entity="cluster", config={"eligible.leader.replicas.version": version})


GATEWAY_WORDS = (gateway, hears, silence_gateway, assign, config, eligible)
