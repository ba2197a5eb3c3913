"""The state in other pages: replaced as a whole or not at all, on every bus.

The buses on Kafka are on the node of ``kafka_servers``.
"""

import pytest

from bus.interface import Bus, Decided, DivergedError, FencedError, Image, Page
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from tests.support.commits import readable
from tests.support.waiting import wait_until


def claimed(bus: Bus) -> int:
    return bus.claim("job", {}, 1).controller_epoch


def test_an_image_is_replaced_as_a_whole(bus: Bus, other: Bus) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 1, [], [Page(0, -1, b"a"), Page(0, 3, b"x" * MESSAGE_BYTES_MAX), Page(1, -1, b"b")])
    bus.commit(epoch, 2, [Decided(2, 0, b"two")], [Page(1, -1, b"c")])
    readable(2, bus, other)
    image = Image(2, [Page(0, -1, b"d"), Page(0, 9, b"moved")])
    bus.replace_image(epoch, image)
    wait_until(lambda: other.image() == bus.image() == image, "the new image to be readable")
    assert (bus.layouts(), other.layouts(), other.decided_seq()) == (1, 1, 2)
    assert other.decisions((0, -1), 10) == [Decided(2, 0, b"two")]
    assert claimed(other) == epoch + 1
    other.commit(epoch + 1, 3, [], [Page(0, 9, b"changed")])
    readable(3, bus, other)
    assert bus.image() == (3, [Page(0, -1, b"d"), Page(0, 9, b"changed")])
    assert other.layouts() == 1


def test_an_image_is_not_replaced_by_half_or_by_a_superseded_job(
    bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = claimed(bus)
    former, image = [Page(0, -1, b"a"), Page(0, 3, b"b")], Image(1, [Page(0, 9, b"c")])
    bus.commit(epoch, 1, [], former)
    readable(1, bus, other)

    def cut_off(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("bus.page_table.write_pages", cut_off)
        patched.setattr("bus.kafka.transaction.Transaction.end", cut_off)
        with pytest.raises(KeyboardInterrupt):
            bus.replace_image(epoch, image)
    assert claimed(other) == epoch + 1
    with pytest.raises(FencedError):
        bus.replace_image(epoch, image)
    with pytest.raises(DivergedError, match="is at seq 1, not 2"):
        other.replace_image(epoch + 1, image._replace(seq=2))
    assert (other.image(), other.layouts()) == ((1, former), 0)
