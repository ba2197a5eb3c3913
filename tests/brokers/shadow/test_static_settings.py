"""What a controller answers about its file."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from brokers.shadow import static_settings
from brokers.shadow.controller_line import DESCRIBE_CONFIGS, Endpoint, describe_configs_values
from brokers.shadow.quorum import Quorum
from brokers.shadow.static_settings import RefusedSettingsError, StaticSettings, found_in
from brokers.wire.catalogue import Catalogue
from brokers.wire.schema import Values
from brokers.wire.security.connecting import Client
from tests.support.waiting import TIMEOUT_S

DYNAMIC, STATIC, DEFAULT = 3, 4, 5
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
FIRST, SECOND = Endpoint("one", 1), Endpoint("two", 2)


def config(name: str, source: int, value: str | None, *below: tuple[int, str]) -> Values:
    synonyms = [{"Name": name, "Value": text, "Source": place} for place, text in below]
    return {"Name": name, "Value": value, "ReadOnly": False, "ConfigSource": source, "Synonyms": synonyms}


def answer(*configs: Values, code: int = 0, message: str | None = None) -> Values:
    return {"Results": [{"ErrorCode": code, "ErrorMessage": message, "Configs": list(configs)}]}


@pytest.mark.parametrize("version", range(DESCRIBE_CONFIGS.version_min, DESCRIBE_CONFIGS.version_max + 1))
def test_a_controller_is_asked_for_some_settings_with_what_is_below_them(version: int) -> None:
    catalogue = Catalogue("brokers.wire.configs")
    frame = catalogue.encode_request(DESCRIBE_CONFIGS.key, version, 1, "test", describe_configs_values(7, (MIN_ISR,)))
    request = catalogue.decode_request(frame).values
    [resource] = request["Resources"]
    assert (resource["ResourceType"], resource["ResourceName"], request["IncludeSynonyms"]) == (4, "7", True)
    assert resource["ConfigurationKeys"] == [MIN_ISR], "no other setting is asked for, so no secret is told"


def test_the_file_counts_and_not_what_is_laid_over_it() -> None:
    told = answer(
        config(MIN_ISR, DYNAMIC, "3", (DYNAMIC, "3"), (STATIC, "2"), (DEFAULT, "1")),
        config(UNCLEAN, DEFAULT, "false"),
        config("hidden", STATIC, None),
    )
    assert found_in(told) == {MIN_ISR: "2", UNCLEAN: "false"}


def test_a_refusal_names_the_right_that_is_missing() -> None:
    with pytest.raises(RefusedSettingsError, match="needs DESCRIBE_CONFIGS"):
        found_in(answer(code=31, message="Cluster authorization failed."))


def test_each_active_controller_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Endpoint] = []
    told: list[tuple[int, Mapping[str, str]]] = []
    done = asyncio.Event()

    async def ask(leader: Endpoint, client: Client, controller: int) -> Mapping[str, str] | None:
        asked.append(leader)
        # The first question is lost.
        return None if len(asked) == 1 else {MIN_ISR: str(controller)}

    async def tell(controller: int, settings: Mapping[str, str]) -> None:
        told.append((controller, settings))
        quorum.leader, quorum.leader_id = SECOND, 2
        if len(told) == 2:
            done.set()

    async def run() -> None:
        settings = StaticSettings()
        asking = asyncio.create_task(settings.keep_asking(quorum, tell))
        await asyncio.wait_for(done.wait(), TIMEOUT_S)
        await asyncio.sleep(0.05)
        await settings.first_answer()
        asking.cancel()

    monkeypatch.setattr(static_settings, "static_settings_of", ask)
    monkeypatch.setattr(static_settings, "INTERVAL_S", 0.001)
    quorum = Quorum([FIRST], Client())
    quorum.leader, quorum.leader_id = FIRST, 1
    asyncio.run(run())
    assert told == [(1, {MIN_ISR: "1"}), (2, {MIN_ISR: "2"})]
    assert asked == [FIRST, FIRST, SECOND]


def test_a_refusal_ends_the_questions_and_the_wait_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(*_: Any) -> None:
        raise RefusedSettingsError("no")

    async def tell(*_: Any) -> None:
        raise AssertionError

    async def run() -> None:
        settings = StaticSettings()
        await asyncio.wait_for(settings.keep_asking(quorum, tell), TIMEOUT_S)
        await asyncio.wait_for(settings.first_answer(), TIMEOUT_S)

    monkeypatch.setattr(static_settings, "static_settings_of", ask)
    quorum = Quorum([FIRST], Client())
    quorum.leader, quorum.leader_id = FIRST, 1
    asyncio.run(run())
