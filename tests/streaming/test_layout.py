"""The numbers of shards and pages are fixed once a state is written; a change is refused with the value to set."""

import pytest
from msgspec.structs import replace

from bus.interface import Image, Page
from conf.settings import Settings
from state.cluster import Cluster
from state.codec import encode_cluster, encode_slices, encode_topics
from state.ids import page_of, shard_of
from state.partition import Partition, PartitionState, ReplicaState, Topic, TopicState
from state.shard_outcome import CLUSTER_PAGE
from state.slices import slices_of
from streaming.layout import misfit

NAMES = [f"topic-{number}" for number in range(40)]


def image(names: list[str], shards: int, pages: int) -> Image:
    """Make an image of some topics, and one empty page."""
    held: dict[tuple[int, int], list[Topic]] = {(0, 0): []}
    for name in names:
        topic = Topic(name, "id", TopicState.created, {}, ())
        held.setdefault((shard_of(name, shards), page_of(name, shards, pages)), []).append(topic)
    clusters = [
        Page(shard, CLUSTER_PAGE, encode_cluster(Cluster(shard=shard, shards=shards))) for shard in range(shards)
    ]
    return Image(1, [*clusters, *(Page(*place, encode_topics(topics)) for place, topics in held.items())])


@pytest.mark.parametrize(("shards", "pages"), [(16, 64), (1, 1), (4, 3), (4, 1_000)])
@pytest.mark.parametrize("names", [[], NAMES[:1], NAMES])
def test_the_settings_of_the_stored_state_fit(names: list[str], shards: int, pages: int) -> None:
    assert misfit(image(names, shards, pages), Settings(shards=shards, pages=pages)) is None


def test_an_empty_bus_fits_any() -> None:
    assert misfit(Image(0, []), Settings(shards=3, pages=5)) is None


def test_other_shards_are_refused() -> None:
    said = misfit(image([], 16, 64), Settings(shards=8))
    assert said is not None
    assert said.startswith("shards is 8")
    assert said.endswith("set shards = 16")


@pytest.mark.parametrize("pages", [64, 100, 7])
@pytest.mark.parametrize("other", [16, 128])
def test_another_number_of_pages_is_refused_with_the_fitting_one(pages: int, other: int) -> None:
    said = misfit(image(NAMES, 16, pages), Settings(pages=other))
    assert said is not None
    assert said.startswith(f"pages is {other}")
    assert said.endswith(f"set pages = {pages}")


def test_with_few_topics_a_fitting_number_of_pages_is_named() -> None:
    few = image(NAMES[:2], 16, 50)
    said = misfit(few, Settings(pages=3))
    assert said is not None
    assert misfit(few, Settings(pages=int(said.rpartition(" = ")[2]))) is None


def test_no_number_of_pages_is_named_when_none_fits() -> None:
    *pages, last = image(NAMES, 16, 64).pages
    said = misfit(Image(1, [*pages, last._replace(page=last.page + 1)]), Settings())
    assert said is not None
    assert said.endswith("set pages to the value with which the state was written")


@pytest.mark.parametrize("pages", [64, 7])
def test_a_large_topic_alone_shows_how_many_pages_there_are(pages: int) -> None:
    none = Partition(0, PartitionState.NewPartition, (1,), (ReplicaState.NewReplica,))
    large = Topic("t", "id", TopicState.created, {}, tuple(replace(none, partition=n) for n in range(2_500)))
    home = page_of("t", 16, pages)
    image = Image(
        1,
        [
            Page(0, CLUSTER_PAGE, encode_cluster(Cluster(shards=16))),
            *(Page(0, home + nth * pages, encode_slices([one])) for nth, one in enumerate(slices_of(large))),
        ],
    )
    assert misfit(image, Settings(pages=pages)) is None
    said = misfit(image, Settings(pages=home + 1 if home + 1 != pages else 2 * pages))
    assert said is not None
    assert said.endswith(f"set pages = {pages}")
