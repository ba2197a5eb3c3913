"""One job on a checkpoint: the next one waits, but not for ever."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from isrflow.streaming.checkpoint_lock import checkpoint_lock, is_locked

HOLD = """
import sys, time
from pathlib import Path
from isrflow.streaming.checkpoint_lock import checkpoint_lock
with checkpoint_lock(Path(sys.argv[1]), 0, lambda: None) as held:
    print(held, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "data" / "checkpoint"


@pytest.fixture
def holder(checkpoint: Path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, checkpoint], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"True\n"
    yield process
    process.kill()
    process.wait(10)


def never() -> None:
    """Wait on."""


def test_it_is_free_again_after_its_holder(checkpoint: Path) -> None:
    assert not is_locked(checkpoint)
    with checkpoint_lock(checkpoint, 0, never) as held:
        assert held
        assert is_locked(checkpoint)
    assert not is_locked(checkpoint)


def test_a_killed_holder_lets_go(checkpoint: Path, holder: subprocess.Popen[bytes]) -> None:
    assert is_locked(checkpoint)
    holder.kill()
    with checkpoint_lock(checkpoint, 30_000, never) as held:
        assert held


def test_one_that_does_not_let_go_is_waited_for_so_long(checkpoint: Path, holder: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    with checkpoint_lock(checkpoint, 200, never) as held:
        assert not held
    assert time.monotonic() - started >= 0.2


def test_who_waits_may_give_up(checkpoint: Path, holder: subprocess.Popen[bytes]) -> None:
    def give_up() -> None:
        raise LookupError("superseded")

    with pytest.raises(LookupError, match="superseded"), checkpoint_lock(checkpoint, 30_000, give_up):
        pytest.fail("it was held")
