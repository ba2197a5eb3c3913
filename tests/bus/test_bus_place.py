"""Where the file of a bus is: what is in the way is named."""

from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import BusError
from isrflow.sqlite.bus_file import Access
from tests.support.another_user import another_user


@pytest.mark.parametrize("access", list(Access))
def test_what_is_above_the_file_and_in_the_way_is_named(tmp_path: Path, access: Access) -> None:
    path = tmp_path / "private" / "bus.db"
    EmbeddedBus(path).close()
    path.parent.chmod(0)
    with another_user(), pytest.raises(BusError) as caught:
        EmbeddedBus(path, access)
    path.parent.chmod(0o700)
    # Pytest's own directory may be closed to that user too.
    said, _, closed = str(caught.value).rpartition(" ")
    assert (said, path.is_relative_to(closed)) == (f"bus {path}: this user may not enter", True)
    for below in (path / "bus.db", path / "far" / "bus.db"):
        with pytest.raises(BusError) as caught:
            EmbeddedBus(below, access)
        assert str(caught.value) == f"bus {below}: {path} is a file, but must be a directory"
