"""A term that ends between two transactions: the next one goes on from what ZooKeeper holds by then."""

from collections.abc import Iterable, Iterator

import pytest

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.former_topics import former_partitions
from brokers.gateways.zk.mirror import Mirror
from brokers.gateways.zk.session import BYTES_AT_ONCE, WRITES_AT_ONCE
from brokers.gateways.zk.shared_mirror import SharedMirror
from brokers.gateways.zk.stored import load
from brokers.gateways.zk.transactions import Write, transactions
from state.decisions import AnyDecision
from tests.brokers.gateways.zk.decided import OTHER_ID, led, topic
from tests.brokers.gateways.zk.tree import Tree

# Of a single partition, every cut is tried for each write. Of many, ZooKeeper's limit makes the cuts.
LIMITS = [(1, 3), (WRITES_AT_ONCE, 150), (WRITES_AT_ONCE, 200)]
MIRRORS = [Mirror, SharedMirror]


def planned(tree: Tree, view: ClusterView, kind: type[Mirror]) -> list[Write]:
    """Plan as a term does that begins."""
    mirror = kind()
    for one in load(tree.session, mirror):
        if isinstance(mirror, SharedMirror):
            assert mirror.begin_with(view, one) == {}
    kept = mirror.topics - set(mirror.strangers(view))
    return list(mirror.writes(view, dict.fromkeys(sorted(kept | view.topics.keys())), 7))


def parts(writes: Iterable[Write], writes_max: int) -> list[list[Write]]:
    return list(transactions(writes, writes_max, BYTES_AT_ONCE))


def cut_trees(begun: Tree, divided: list[list[Write]]) -> Iterator[Tree]:
    """Yield what ZooKeeper holds after the first transactions, for each number of them."""
    for cut in range(len(divided) + 1):
        tree = copied(begun)
        for part in divided[:cut]:
            tree.make(part)
        yield tree


def made(tree: Tree, view: ClusterView, kind: type[Mirror]) -> Tree:
    tree.make(planned(tree, view, kind))
    assert planned(tree, view, kind) == []
    return tree


def created(count: int, topic_id: str | None = None, first: int = 0) -> list[AnyDecision]:
    more = {} if topic_id is None else {"topic_id": topic_id}
    partitions = [led(partition=number, **more) for number in range(first, count)]
    return [*partitions, topic(**more, a="1")]


def worlds(count: int) -> dict[str, tuple[list[AnyDecision], list[AnyDecision]]]:
    """Return for each kind of change what was decided before it, and then."""
    moved = [led(2, 3, 3, partition=number) for number in range(count)]
    return {
        "created": ([], created(count)),
        "grown": (created(2), created(count, first=2)),
        "moved": (created(count), moved),
        "altered": (created(count), [topic(a="2")]),
        "deleted": (created(count), [topic("deleted")]),
        "replaced": (created(count), [topic("deleted"), *created(count, OTHER_ID)]),
    }


@pytest.mark.parametrize("kind", MIRRORS)
@pytest.mark.parametrize("change", worlds(0))
@pytest.mark.parametrize(("writes_max", "count"), LIMITS)
def test_the_next_term_completes_what_was_cut(writes_max: int, count: int, change: str, kind: type[Mirror]) -> None:
    before, after = worlds(count)[change]
    view = heard(ClusterView(), before)
    begun = made(Tree(), view, kind)
    heard(view, after)
    expected = made(copied(begun), view, kind)
    for tree in cut_trees(begun, parts(planned(begun, view, kind), writes_max)):
        assert texts(made(tree, view, kind)) == texts(expected)


@pytest.mark.parametrize(("writes_max", "count"), LIMITS)
def test_a_topic_that_is_deleted_after_a_cut_leaves_nothing_that_looks_new(writes_max: int, count: int) -> None:
    view, gone = heard(ClusterView(), created(count)), ClusterView()
    there = made(Tree(), view, Mirror)
    for begun, wanted in ((Tree(), view), (there, gone)):
        for tree in cut_trees(begun, parts(planned(begun, wanted, Mirror), writes_max)):
            mirror = Mirror()
            found = list(load(tree.session, mirror))
            assert mirror.strangers(gone) == []
            # Brokers may know all of them still.
            assert [len(former_partitions(one, gone)) for one in found] == [count for _ in found]
            # Settings that are left may be those of a topic that a broker is about to write.
            assert set(made(tree, gone, Mirror).znodes) <= {"/config/topics/t"}


@pytest.mark.parametrize("kind", MIRRORS)
@pytest.mark.parametrize(("writes_max", "count"), LIMITS)
def test_another_topic_of_the_name_replaces_what_was_cut(writes_max: int, count: int, kind: type[Mirror]) -> None:
    view, gone = heard(ClusterView(), created(count)), ClusterView()
    other = heard(ClusterView(), created(1, OTHER_ID))
    expected = made(Tree(), other, kind)
    for begun, wanted in ((Tree(), view), (made(Tree(), view, kind), gone)):
        for tree in cut_trees(begun, parts(planned(begun, wanted, kind), writes_max)):
            assert texts(made(tree, other, kind)) == texts(expected)


def test_settings_change_together_with_the_note_that_tells_brokers() -> None:
    view = heard(ClusterView(), created(1))
    tree = made(Tree(), view, Mirror)
    [part] = parts(planned(tree, heard(view, [topic(a="2")]), Mirror), 1)
    assert [one.path for one in part] == ["/config/topics/t", "/config/changes/config_change_"]


def test_a_transaction_is_within_both_limits() -> None:
    writes = planned(Tree(), heard(ClusterView(), created(500)), Mirror)
    divided = list(transactions(writes, 300, 20_000))
    assert [one for part in divided for one in part] == writes
    assert max(map(len, divided)) <= 300
    assert max(sum(len(one.path) + len(getattr(one, "data", b"")) for one in part) for part in divided) <= 20_000


def heard(view: ClusterView, decisions: Iterable[AnyDecision]) -> ClusterView:
    for decision in decisions:
        view.apply(decision)
    return view


def copied(tree: Tree) -> Tree:
    copy = Tree()
    copy.znodes = dict(tree.znodes)
    return copy


def texts(tree: Tree) -> dict[str, tuple[bytes, int]]:
    """Return what is there, with the versions that brokers use: those of the partitions' states."""
    return {path: (text, version if path.endswith("/state") else 0) for path, (text, version) in tree.znodes.items()}
