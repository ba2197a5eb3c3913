"""The words of a story about what brokers report of their replicas."""

from tests.scenarios.arguments import epoch_in, ids, partition_of, request_id_in
from tests.scenarios.script import Script
from tests.scenarios.story import Command


def offsets(script: Script, command: Command) -> None:
    """Report log ends, then tick: ``offsets t-0 1=10 2=7 epoch=stale``; with ``no-tick`` they wait for one.

    ``broker-epoch=stale`` reports them under their brokers' previous epochs.
    """
    name, number = partition_of(command.arguments[0])
    epoch = epoch_in(command.options.get("epoch"), script.partition(name, number).leader_epoch)
    for broker, end in ((int(key), int(value)) for key, value in command.options.items() if key.isdecimal()):
        script.ends.setdefault((name, number), {})[broker] = end
        fields = {"broker": broker, "leader_epoch": epoch, "log_end_offset": end}
        if "broker-epoch" in command.options:
            fields["broker_epoch"] = script.broker_epoch(broker, command.options["broker-epoch"])
        fields |= script.topic_fields(name, command.options.get("topic-id"))
        script.write("log_end_offset", partition=number, **fields, **request_id_in(command))
    if (name, number) not in script.charts:
        script.charts.append((name, number))
    if "no-tick" not in command.arguments:
        script.pass_time(100)


def replica_log(script: Script, command: Command) -> None:
    """Report the log of a replica that follows no leader: ``replica-log t-0 1 end=10 epoch=0``, ``hw=9 dir=/d``.

    The stored high watermark is 0 unless given. ``broker-epoch=stale`` reports it under the previous registration.
    """
    (name, number), given = partition_of(command.arguments[0]), command.options
    broker = int(command.arguments[1])
    script.write(
        "replica_log",
        **script.topic_fields(name, given.get("topic-id")),
        partition=number,
        broker=broker,
        broker_epoch=script.broker_epoch(broker, given.get("broker-epoch")),
        last_written_epoch=int(given.get("epoch", 0)),
        log_end_offset=int(given["end"]),
        high_watermark=int(given.get("hw", 0)),
        **({"directory": given["dir"]} if "dir" in given else {}),
        **request_id_in(command),
    )


def report(script: Script, command: Command) -> None:
    """Report outcomes for replicas: ``report t-0 1,2 deleted``, ``report t-0 3 error error=KAFKA_STORAGE_ERROR``."""
    name, number = partition_of(command.arguments[0])
    for broker in ids(command.arguments[1]):
        script.write(
            "replica_report",
            **script.topic_fields(name, command.options.get("topic-id")),
            partition=number,
            broker=broker,
            broker_epoch=script.broker_epoch(broker, command.options.get("epoch")),
            leader_epoch=epoch_in(command.options.get("leader-epoch"), script.partition(name, number).leader_epoch),
            outcome=command.arguments[2],
            **({"error": command.options["error"]} if "error" in command.options else {}),
            **request_id_in(command),
        )


LOG_WORDS = (offsets, replica_log, report)
