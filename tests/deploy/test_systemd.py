"""The systemd units start a command that exists, in places that they own, and restart what should be restarted."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from brokers.gateways.kraft import settings as kraft_settings
from brokers.process.ending import EXIT_SUPERSEDED
from cli import errors
from conf.environment import given_in
from conf.loader import KEYS, load
from tests.deploy.commands import understood
from tests.deploy.documents import DEPLOY
from tests.support.units import UNITS, by_name, service, starts_again

PATHS = sorted(UNITS.glob("*.service"))
PROFILES = DEPLOY.parent / "conf" / "profiles"
ENGINES = ("isrflow", "isrflow-standby")
COMMAND = "/opt/isrflow/bin/isrflow"


def test_there_is_a_unit_for_one_engine_one_for_a_pair_and_one_for_a_gateway() -> None:
    assert [path.stem for path in PATHS] == ["isrflow-gateway", "isrflow-standby", "isrflow"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_systemd_understands_the_unit(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    # It checks that the command is there too.
    copy.write_text(path.read_text().replace(COMMAND, sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=120, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if path.name in line]
    assert complaints == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_unit_starts_a_command_with_its_own_places(path: Path) -> None:
    unit = service(path)
    ((program, *words),) = map(shlex.split, unit["ExecStart"])
    assert program == COMMAND
    environment = dict(pair.split("=", 1) for pair in unit["Environment"])
    given_in(environment, KEYS)
    assert Path(environment["ISRFLOW_CONF"]).parent == Path("/etc", *unit["ConfigurationDirectory"])
    state = Path("/var/lib", *unit["StateDirectory"])
    assert unit["WorkingDirectory"] == [str(state)]
    # docs/running.md installs these profiles as the settings.
    if path.stem == "isrflow-gateway":
        assert words == ["gateway", "kraft"]
        identity = kraft_settings.identity_of(kraft_settings.load(PROFILES / "gateway.toml"))
        assert identity.directory.is_relative_to(state)
        assert identity.audit_directory == state
    else:
        assert understood(words)["standby"] == (path.stem == "isrflow-standby")
        assert Path(environment["ISRFLOW_CACHE"]) == Path("/var/cache", *unit["CacheDirectory"])
        assert Path(load(PROFILES / "production.toml").checkpoint_dir).is_relative_to(state)


def test_what_is_prepared_is_where_the_units_look_for_it() -> None:
    lines = (DEPLOY.parent / "docs" / "running.md").read_text().splitlines()
    (line,) = [line for line in lines if line.endswith("doctor --prepare")]
    cache, program, *_ = shlex.split(line)
    assert program == COMMAND
    assert all(cache in by_name(name)["Environment"] for name in ENGINES)


def test_only_what_may_start_again_is_restarted() -> None:
    one, pair, gateway = by_name("isrflow"), by_name("isrflow-standby"), by_name("isrflow-gateway")
    wrong, superseded = errors.WrongUse.exit_code, errors.Superseded.exit_code
    assert wrong == click.UsageError.exit_code
    assert one["RestartPreventExitStatus"] == [f"{wrong} {superseded}"]
    assert one["SuccessExitStatus"] == [str(superseded)]
    assert pair["RestartPreventExitStatus"] == [str(wrong)]
    # Whatever else ends an engine, it comes back. A pair comes back after 4 too.
    assert [code for code in range(256) if not starts_again("isrflow", code)] == [wrong, superseded]
    assert [code for code in range(256) if not starts_again("isrflow-standby", code)] == [wrong]
    assert superseded == EXIT_SUPERSEDED
    assert [code for code in range(256) if not starts_again("isrflow-gateway", code)] == [wrong, superseded]
    for unit in (one, pair, gateway):
        assert unit["Restart"] == ["always"]
        # A start may take as long as the state is large, and a kill would begin it again.
        assert (unit["Type"], unit["TimeoutStartSec"]) == (["notify"], ["infinity"])
    for unit in (one, pair):
        assert int(unit["TimeoutStopSec"][0]) >= 60
        # Only the engine gets SIGTERM; its JVM must not end before it.
        assert unit["KillMode"] == ["mixed"]
    assert int(gateway["TimeoutStopSec"][0]) * 1_000 > 4 * kraft_settings.Settings().hand_over_timeout_ms


def test_the_units_are_hardened_alike() -> None:
    one, pair = by_name("isrflow"), by_name("isrflow-standby")
    differing = {name for name in {*one, *pair} if one[name] != pair[name]}
    assert differing == {"Description", "ExecStart", "RestartPreventExitStatus", "SuccessExitStatus", "Conflicts"}
    places = {"Environment", "WorkingDirectory", "StateDirectory", "CacheDirectory", "KillMode", "TimeoutStopSec"}
    gateway = by_name("isrflow-gateway")
    assert {name for name in {*pair, *gateway} if pair[name] != gateway[name]} == {
        *(differing - {"SuccessExitStatus"}),
        *places,
    }
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictSUIDSGID"):
        assert one[name] == ["yes"]
    assert one["ProtectSystem"] == ["strict"]
    # Java's compiler writes code and runs it.
    assert "MemoryDenyWriteExecute" not in one
