"""The last release and the next one on one bus: either may run what the other ran, until the level is raised.

The next one is this tree, and supports a level more than the last one.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from brokers.process.ending import EXIT_REFUSED
from state.stored import codec
from tests.support.engine import START_TIMEOUT_S
from tests.upgrade.releases import LAST_LEVEL, NEXT_LEVEL, Release, last_release, next_release
from tests.upgrade.site import Site

# Eight engines start one after another, and on a busy machine each may take minutes.
pytestmark = [pytest.mark.spark, pytest.mark.mock_brokers, pytest.mark.kraft, pytest.mark.timeout(1_800)]

OTHER_RELEASE, SUPERSEDED = 2, 4
TOLD = f"the bus is at level {NEXT_LEVEL}, and this isrflow supports {LAST_LEVEL} at most"


@pytest.fixture
def installing(tmp_path: Path) -> Iterator[tuple[Future[Release], Future[Release]]]:
    """Install both releases at once."""
    with ThreadPoolExecutor() as threads:
        yield threads.submit(last_release, tmp_path), threads.submit(next_release, tmp_path)


@pytest.fixture
def last(installing: tuple[Future[Release], Future[Release]]) -> Release:
    return installing[0].result()


@pytest.fixture
def newer(installing: tuple[Future[Release], Future[Release]]) -> Release:
    return installing[1].result()


@pytest.fixture
def site(tmp_path: Path, last: Release, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # The test itself reads the state at both levels.
    monkeypatch.setattr(codec, "NEWEST_LEVEL", NEXT_LEVEL)
    directory = tmp_path / "site"
    directory.mkdir()
    site = Site(directory, last)
    yield site
    site.end()


def test_either_release_runs_what_the_other_ran_until_the_level_is_raised(
    site: Site, last: Release, newer: Release
) -> None:
    engine_takes_over(site, newer, last, newer)
    engine_takes_over(site, last, last, newer)
    for release in (newer, last):
        standby_takes_over_from_a_killed_engine(site, release)
    the_level_waits_for_all_processes(site, last, newer)
    the_last_release_ends_at_the_new_level(site, last, newer)
    site.load.end(site.cluster.bootstrap())


def engine_takes_over(site: Site, release: Release, *clients: Release) -> None:
    """Let an engine take over from one that runs. Clients of both releases, a broker and the gateway follow it."""
    former = site.engine
    site.take_over(site.start_engine(release))
    assert former.wait() == SUPERSEDED
    for client in clients:
        assert site.program(client, f"{release.name}-by-{client.name}") == "NONE"
        code, told = site.command(client, "topics", "list")
        assert code == 0, told
    site.replace_brokers(release, 1)
    site.start_gateway(release)


def standby_takes_over_from_a_killed_engine(site: Site, release: Release) -> None:
    standby = site.stand_by(site.start_engine(release, "--standby"))
    site.engine.kill()
    site.take_over(standby)


def the_level_waits_for_all_processes(site: Site, last: Release, newer: Release) -> None:
    code, told = site.command(newer, "level", "raise")
    lacking = (f"{one} ({LAST_LEVEL})" for one in ("the engine", "gateway 100", "broker 1", "broker 2", "broker 3"))
    assert (code, ", ".join(lacking) in told) == (1, True), told
    site.take_over(site.start_engine(newer))
    standby = site.start_engine(last, "--standby")
    site.replace_brokers(newer, 1, 2, 3)
    code, told = site.command(newer, "level", "raise")
    assert (code, f"not supported by gateway 100 ({LAST_LEVEL})" in told) == (1, True), told
    site.start_gateway(newer)
    site.stand_by(standby)
    code, told = site.command(newer, "level", "raise")
    assert (code, told) == (0, f"The bus is at level {NEXT_LEVEL}.\n")
    assert standby.wait(START_TIMEOUT_S) == OTHER_RELEASE
    assert_one_line(standby.log)


def the_last_release_ends_at_the_new_level(site: Site, last: Release, newer: Release) -> None:
    engine = site.start_engine(last)
    assert engine.wait(START_TIMEOUT_S) == OTHER_RELEASE
    assert_one_line(engine.log)
    code, told = site.command(last, "topics", "list")
    assert (code, told) == (OTHER_RELEASE, f"Error: {TOLD}: start a newer release\n")
    assert site.program(last, "by-last-at-the-new-level") == f"NONE {NEXT_LEVEL}"
    site.stop_gateway()
    assert site.launch_gateway(last).wait(START_TIMEOUT_S) == EXIT_REFUSED
    assert_one_line(site.directory / "gateway.log")
    assert site.cluster.terminate(1) == 0
    site.cluster.python = last.python
    site.cluster.launch(1)
    assert site.cluster.exit_code(1) == EXIT_REFUSED
    assert_one_line(site.directory / "broker-1.log")
    site.cluster.python = newer.python
    site.cluster.start(1)
    site.start_gateway(newer)
    site.load.check_goes_on()


def assert_one_line(log: Path) -> None:
    """Check that a process said last that the level is not supported, and showed no stack."""
    lines = log.read_text().splitlines()
    assert TOLD in lines[-1], "\n".join(lines[-20:])
    assert "Traceback" not in log.read_text()
