"""The locks by which processes see that others use the same bus, or write to it."""

import subprocess
import sys
import threading
from pathlib import Path

from bus.embedded import EmbeddedBus
from bus.open_bus import open_bus
from tests.support.lock_holder import Holder
from tests.support.waiting import TIMEOUT_S

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


def test_a_bus_opened_twice_in_a_process_stays_locked_for_others(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    bus = EmbeddedBus(path)
    # If opening and closing the file released this process's locks, the other process would seem to be the last
    # to close the bus, and would remove the log beside it.
    EmbeddedBus(path).close()
    opened_and_closed = f"from bus.embedded import EmbeddedBus; EmbeddedBus({str(path)!r}).close()"
    subprocess.run([sys.executable, "-c", opened_and_closed], check=True, timeout=TIMEOUT_S)
    seq = bus.publish([EVENT])
    reader = open_bus(str(path), read_only=True)
    assert reader.last_seq() == seq
    reader.close()
    bus.close()


def test_a_process_can_wait_until_no_other_one_keeps_it_from_writing(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    bus = EmbeddedBus(path)
    bus.await_writable()
    holder = Holder(path)
    waiter = threading.Thread(target=bus.await_writable)
    waiter.start()
    waiter.join(0.1)
    assert waiter.is_alive()
    holder.let_go()
    waiter.join(TIMEOUT_S)
    assert not waiter.is_alive()
    bus.close()
