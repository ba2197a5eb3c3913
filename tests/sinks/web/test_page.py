"""The page over HTTP: its files, its stream of events, and its questions."""

import contextlib
import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Decided, Page
from conf.security.exposure import Protection
from sinks.metrics import Metrics
from sinks.web import push
from sinks.web.past import PastError, shown, shown_topic
from sinks.web.site import Site
from sinks.web.view import encode
from state.broker import Broker
from state.cluster import Cluster
from state.stored.codec import encode_cluster, encode_slices
from state.stored.slices import slices_of
from tests.sinks.sample import NOW_MS, decision
from tests.sinks.web.test_live import BROKERS
from tests.sinks.web.test_partitions import partition, topic
from tests.sinks.web.test_partitions import topic as make_topic
from tests.support.waiting import TIMEOUT_S, wait_until

STATIC = Path(push.__file__).parent / "static"
BYTES_MAX = 100_000
_OPEN = Protection()


class Told:
    """A past that is known."""

    def explain(self, topic: str, partition: int, seq: int | None = None) -> bytes:
        if topic != "orders":
            raise PastError(f"there is no topic {topic}")
        step = {"seq": 1, "time_ms": NOW_MS, "sentences": [f"Event 1 created {topic}-{partition}."], "times": 1}
        return encode({"summary": [f"It is as of {seq or 'now'}."], "steps": [step]})

    def topic(self, topic: str, seq: int | None = None) -> bytes:
        if topic != "orders":
            raise PastError(f"there is no topic {topic}")
        held = [partition(0), partition(1, isr=(1, 2))]
        return encode(shown_topic(seq or 7, Cluster(brokers=BROKERS), make_topic(*held)))

    def at(self, time_ms: int) -> bytes:
        if time_ms < 1_000:
            raise PastError("the log begins later")
        cluster = Cluster(clock_ms=time_ms, brokers=BROKERS)
        return encode(shown(7, cluster, [topic(partition(0, leader=-1, isr=(2,)))]))

    def close(self) -> None:
        pass


class Served:
    """A site on a bus, with one batch after another."""

    def __init__(self, path: Path, past: Told | None = None, protection: Protection = _OPEN) -> None:
        self.bus = EmbeddedBus(path)
        self.metrics = Metrics(controller_id="controller-a")
        self.site = Site(self.bus, self.metrics, past, protection)
        self.port = self.site.serve("127.0.0.1", 0)
        self.metrics.took_over(3, 0)
        self.seq = 0

    def batch(
        self,
        *partitions: Any,
        decisions: tuple[bytes, ...] = (),
        name: str = "orders",
        brokers: dict[int, Broker] = BROKERS,
    ) -> None:
        self.seq += 1
        cluster = Cluster(seq=self.seq, clock_ms=NOW_MS, brokers=brokers)
        pages = [Page(0, -1, encode_cluster(cluster))]
        if partitions:
            slices = slices_of(topic(*partitions, name=name))
            pages += [Page(0, number, encode_slices([one])) for number, one in enumerate(slices)]
        made = [Decided(self.seq, index, body) for index, body in enumerate(decisions)]
        self.bus.commit(0, self.seq, made, pages)
        self.metrics.committed(
            decisions=made, clusters=[cluster], through=self.seq, last_seq=self.seq, now_ms=NOW_MS, engine_ms=NOW_MS
        )
        self.site.committed(self.seq, [cluster], pages, made)

    def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port or 0, timeout=TIMEOUT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()

    def ask(self, path: str) -> tuple[int, Any]:
        status, _, body = self.get(path)
        return status, json.loads(body)

    def close(self) -> None:
        self.site.close()
        self.bus.close()


class Stream:
    """A browser's end of the stream."""

    def __init__(self, port: int | None, **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port or 0, timeout=TIMEOUT_S)
        self.connection.request("GET", "/page/events", headers=headers)
        self.answer = self.connection.getresponse()
        self.bytes = 0

    def next(self, name: str) -> Any:
        """Wait for the next event of a name."""
        found = ""
        while True:
            line = self.answer.readline().decode()
            assert line, "the stream ended"
            self.bytes += len(line)
            if line.startswith("event: "):
                found = line.removeprefix("event: ").strip()
            elif line.startswith("data: ") and found == name:
                return json.loads(line.removeprefix("data: "))

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path / "bus.db", Told())
    yield made
    made.close()


def test_the_page_and_its_files_are_served_and_nothing_comes_from_elsewhere(served: Served) -> None:
    status, headers, body = served.get("/")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/html")
    assert headers["content-security-policy"].startswith("default-src 'self';")
    named = set(re.findall(r'(?:href|src)="(/page/[a-z.]+)"', body.decode()))
    assert {served.get(path)[0] for path in named} == {200}
    for path in STATIC.iterdir():
        text = path.read_text()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path.name
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
    for module in re.findall(r'from "\./([a-z]+\.js)"', (STATIC / "page.js").read_text()):
        assert served.get(f"/page/{module}")[1]["content-type"].startswith("text/javascript")


def test_a_browser_gets_every_section_and_then_what_changed(served: Served) -> None:
    served.batch(partition(0), decisions=(decision("leader_and_isr", "TOPIC_CREATED", topic="orders", partition=0),))
    stream = Stream(served.port)
    try:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.next("status")["controller_epoch"] == 3
        while not (cluster := stream.next("cluster"))["partitions"]:
            pass
        assert [broker["leaders"] for broker in cluster["brokers"]] == [1, 0, 0]
        served.batch(partition(0, leader=2, isr=(2, 3)))
        changed = stream.next("cluster")
        assert [broker["leaders"] for broker in changed["brokers"]] == [0, 1, 0]
        assert changed["rows"][0]["problems"] == ["under_replicated"]
        later = Stream(served.port)
        assert later.next("cluster") == changed
        assert later.next("decisions")["groups"][0]["first"]["reason"] == "TOPIC_CREATED"
        assert later.next("timeline")["all"] is True
        later.close()
    finally:
        stream.close()


def test_100_000_partitions_at_risk_are_never_all_sent(served: Served) -> None:
    served.batch(*(partition(number, isr=(1, 2)) for number in range(100_000)))
    stream = Stream(served.port)
    try:
        while (cluster := stream.next("cluster"))["at_risk"] != 100_000:
            pass
        assert len(cluster["rows"]) == 100
        assert stream.bytes < BYTES_MAX
    finally:
        stream.close()


def test_too_many_browsers_are_refused_and_one_that_left_makes_room(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "BROWSERS_MAX", 2)
    streams = [Stream(served.port), Stream(served.port)]
    for stream in streams:
        stream.next("status")
    assert served.get("/page/events")[0] == 503
    streams.pop().close()
    served.batch(partition(0))
    wait_until(lambda: Stream(served.port).answer.status == 200, "room for another browser")
    streams.pop().close()


def test_browsers_that_come_at_once_are_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "BROWSERS_MAX", 2)
    with contextlib.ExitStack() as stack:
        browsers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port or 0), TIMEOUT_S)) for _ in range(40)
        ]
        for one in browsers:
            one.sendall(b"GET /page/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = [one.recv(12) for one in browsers]
    assert answers.count(b"HTTP/1.1 200") == 2
    wait_until(lambda: Stream(served.port).answer.status == 200, "room for another browser")


def test_the_head_of_the_stream_ends_and_keeps_no_place(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "BROWSERS_MAX", 1)
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", served.port or 0, timeout=TIMEOUT_S)
        connection.request("HEAD", "/page/events")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
        answer.read()
        # Another request on the same connection is answered, so this answer has ended.
        connection.request("HEAD", "/page/events")
        assert connection.getresponse().status == 200
        connection.close()
    stream = Stream(served.port)
    stream.next("status")
    stream.close()


def test_a_partition_is_explained(served: Served) -> None:
    fenced = decision("leader_and_isr", "LEADER_FENCED", topic="orders", partition=0, leader=2)
    served.batch(partition(0, isr=(1, 2)), decisions=(json.dumps(json.loads(fenced), separators=(",", ":")).encode(),))
    path = "/page/partition?topic=orders&partition=0"
    wait_until(lambda: bool(served.ask(path)[1]["decisions"]), "the decision")
    _, answer = served.ask(path)
    assert answer["explanation"]["steps"][0]["sentences"] == ["Event 1 created orders-0."]
    assert answer["row"]["problems"] == ["under_replicated"]
    assert [one["reason"] for one in answer["decisions"]] == ["LEADER_FENCED"]
    assert answer["explanation"]["summary"] == ["It is as of now."]
    assert served.ask(path + "&seq=3")[1]["explanation"]["summary"] == ["It is as of 3."]
    assert answer["gone"] == {}
    served.batch(brokers={1: BROKERS[1]})
    wait_until(lambda: served.ask(path)[1]["gone"] == {"2": "unregistered", "3": "unregistered"}, "the brokers to go")
    _, other = served.ask("/page/partition?topic=other&partition=0")
    assert (other["explanation"], other["why_not"]) == (None, "there is no topic other")


def test_the_cluster_is_shown_as_it_was(served: Served) -> None:
    status, answer = served.ask("/page/past?time_ms=5000")
    assert (status, answer["seq"], answer["clock_ms"]) == (200, 7, 5_000)
    assert answer["cluster"]["problems"]["offline"] == 1
    assert served.ask("/page/past?time_ms=1") == (409, {"error": "the log begins later"})


@pytest.mark.parametrize(
    "path",
    [
        "/page/partition",
        "/page/partition?topic=orders",
        "/page/partition?topic=orders&partition=-1",
        "/page/partition?topic=orders&partition=99999999",
        f"/page/partition?topic={'x' * 250}&partition=1",
        "/page/partition?topic=orders&partition=0&seq=last",
        "/page/past",
        "/page/past?time_ms=now",
    ],
)
def test_a_question_that_makes_no_sense_is_refused(served: Served, path: str) -> None:
    status, answer = served.ask(path)
    assert (status, answer["error"][:8]) == (400, "expected")


def test_without_a_past_a_partitions_last_decisions_remain(tmp_path: Path) -> None:
    made = Served(tmp_path / "bus.db")
    try:
        assert made.ask("/page/partition?topic=orders&partition=0")[1]["explanation"] is None
        assert made.ask("/page/past?time_ms=5000")[0] == 404
    finally:
        made.close()


def test_topics_are_found_by_a_part_of_their_name(served: Served) -> None:
    served.batch(partition(0), name="re-orders")
    wait_until(lambda: served.ask("/page/topics?match=ORDERS")[1]["topics"] == ["re-orders"], "the topic")
    assert served.ask("/page/topics?match=none")[1] == {"match": "none", "topics": [], "count": 0}
    assert served.ask("/page/topics")[0] == served.ask(f"/page/topics?match={'x' * 250}")[0] == 400


def test_a_topic_is_shown_with_its_healthy_partitions(served: Served) -> None:
    status, answer = served.ask("/page/topic?topic=orders")
    assert (status, answer["partitions"]) == (200, 2)
    assert [row["problems"] for row in answer["rows"]] == [[], ["under_replicated"]]
    assert served.ask("/page/topic?topic=orders&seq=5")[1]["seq"] == 5
    assert served.ask("/page/topic?topic=gone") == (409, {"error": "there is no topic gone"})
    assert served.ask("/page/topic?seq=5")[0] == 400
