"""Settings in brokers' files that the engine's values overrule, as brokers tell a gateway; without Kafka."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from structlog.testing import capture_logs

from brokers.gateways.shared import file_settings
from brokers.gateways.shared.file_settings import TRIES_MAX, Asked, FileSettings
from brokers.wire.catalogue import Catalogue, framed

CATALOGUE = Catalogue("brokers.wire.configs")
UNCLEAN, MIN_ISR = "unclean.leader.election.enable", "min.insync.replicas"


def config(name: str, in_force: str, *synonyms: tuple[str, int]) -> dict[str, object]:
    told = [{"Name": name, "Value": value, "Source": source} for value, source in synonyms]
    given = {"Name": name, "Value": in_force, "ReadOnly": False, "IsSensitive": False, "ConfigSource": 3}
    return {**given, "Synonyms": told}


class Broker:
    """A broker that answers DescribeConfigs; ``error`` is the code that it answers with."""

    def __init__(self) -> None:
        self.asked = 0
        self.error = 0
        self.hangs = False
        self.configs = [
            config(MIN_ISR, "1", ("1", 3), ("2", 4), ("1", 5)),
            # Its file says the same, and a default is in no file.
            config(UNCLEAN, "false", ("false", 3), ("false", 4), ("false", 5)),
        ]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        request = CATALOGUE.decode_request(await reader.readexactly(size))
        self.asked += 1
        (resource,) = request.values["Resources"]
        assert (request.name, resource["ResourceType"], request.values["IncludeSynonyms"]) == (
            "DescribeConfigs",
            4,
            True,
        )
        assert sorted(resource["ConfigurationKeys"]) == [MIN_ISR, UNCLEAN]
        if not self.hangs:
            result = {"ErrorCode": self.error, "ErrorMessage": None, "ResourceType": 4, "ResourceName": "1"}
            values = {"Results": [{**result, "Configs": [] if self.error else self.configs}]}
            writer.write(framed(CATALOGUE.encode_response(32, request.version, request.correlation_id, values)))
            await writer.drain()
            writer.close()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(file_settings, "TIMEOUT_MS", 200)
    yield Broker()


def play(broker: Broker, steps: Callable[[int], Awaitable[None]]) -> list[dict[str, object]]:
    """Run ``steps``, which are given the broker's port, and return what was logged."""

    async def played() -> None:
        async with await asyncio.start_server(broker.serve, "127.0.0.1", 0) as server:
            await steps(server.sockets[0].getsockname()[1])

    with capture_logs() as logs:
        asyncio.run(played())
    return [dict(line) for line in logs]


def test_a_setting_that_the_engine_overrules_is_told_once_for_each_registration_until_it_agrees(broker: Broker) -> None:
    serving: list[Asked] = []
    found = FileSettings(lambda: serving)

    async def steps(port: int) -> None:
        for epoch in (5, 5, 9):
            serving[:] = [Asked(1, epoch, ("127.0.0.1", port))]
            await found.look()
            assert found.count == 1
        broker.configs = [config(MIN_ISR, "2", ("2", 3), ("2", 4), ("1", 5))]
        for _ in range(2):
            await found.look()
            assert found.count == 0

    told = {"broker": 1, "setting": MIN_ISR, "file": "2", "in_force": "1", "log_level": "warning"}
    command = "kafka-configs --alter --entity-type brokers --entity-default --add-config min.insync.replicas=2"
    said = {"event": "a setting in a broker's file does not count", "set_it": command, **told}
    assert play(broker, steps) == [said, said]
    assert broker.asked == 4, "one that agrees is asked no more"


def test_the_engines_value_counts_even_if_the_broker_was_not_told_of_it(broker: Broker) -> None:
    broker.configs = [config(MIN_ISR, "2", ("2", 4), ("1", 5))]

    async def steps(port: int) -> None:
        for decided, count in (({}, 0), ({MIN_ISR: "1"}, 1), ({MIN_ISR: "2"}, 0)):
            found = FileSettings(lambda: [Asked(1, 5, ("127.0.0.1", port))], decided.copy)
            await found.look()
            assert found.count == count

    (line,) = play(broker, steps)
    assert (line["file"], line["in_force"]) == ("2", "1")


def test_brokers_that_are_gone_are_forgotten(broker: Broker) -> None:
    serving: list[Asked] = []
    found = FileSettings(lambda: serving)

    async def steps(port: int) -> None:
        for place in (("127.0.0.1", port), None):
            serving[:] = [Asked(1, 5, place)] if place else []
            await found.look()
            assert found.count == bool(place)

    assert len(play(broker, steps)) == 1


@pytest.mark.parametrize("trouble", ["refused", "silent", "closed"])
def test_a_broker_that_does_not_say_is_asked_a_few_times(broker: Broker, trouble: str) -> None:
    broker.error, broker.hangs = 31 if trouble == "refused" else 0, trouble == "silent"

    async def steps(port: int) -> None:
        found = FileSettings(lambda: [Asked(1, 5, ("127.0.0.1", 1 if trouble == "closed" else port))])
        for _ in range(TRIES_MAX + 2):
            await found.look()
        assert found.count == 0

    (line,) = play(broker, steps)
    assert (line["event"], line["broker"]) == ("a broker's file is not compared with the engine's values", 1)
    assert line["why"]
    assert broker.asked == (0 if trouble == "closed" else TRIES_MAX)


def test_a_broker_without_a_listener_in_plain_text_is_not_asked(broker: Broker) -> None:
    async def steps(port: int) -> None:
        found = FileSettings(lambda: [Asked(1, 5, None)])
        for _ in range(3):
            await found.look()

    (line,) = play(broker, steps)
    assert line["why"] == "it has no PLAINTEXT listener"
