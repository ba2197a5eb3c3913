"""How the state on a bus is laid out in shards and pages. The settings must agree with it, or it is laid out again."""

import math
from typing import NamedTuple

from bus.image import read_clusters
from bus.interface import Image, Page
from conf.settings import Settings
from controller_logic.resharding import resharded
from state.cluster import MappedTopics, State
from state.ids import page_of, topic_hash
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import CodecError, LevelError, decode_cluster, decode_slices, encode_cluster, joined_topics
from streaming.paged_topics import PagedTopics

_PAGES_MAX = 1 << 20
Places = dict[tuple[str, int], int]


def misfit(image: Image, settings: Settings) -> str | None:
    """Return which setting to change before the state can be used; None if all of them fit.

    The rules look for a topic on the page that the settings give. With other settings a topic would be listed but not
    found, and could be created a second time. Raises ``CodecError``, which names the page that cannot be read.
    """
    shards, places = _layout(image)
    if shards not in (None, settings.shards):
        return _said("shards", settings.shards, settings, f"it is in {shards} shards: set shards = {shards}")
    if all(
        page_of(topic, settings.shards, settings.pages) + nth * settings.pages == page
        for (topic, nth), page in places.items()
    ):
        return None
    pages = _pages_of(places, settings.shards)
    other = f"set pages = {pages}" if pages else "set pages to the value with which the state was written"
    return _said("pages", settings.pages, settings, f"its topics are on other pages than these: {other}")


class LaidOut(NamedTuple):
    """A state in other shards and pages, how many shards it had before, and how many topics it has."""

    image: Image
    shards_before: int
    topics: int


def laid_out(image: Image, shards: int, pages: int) -> LaidOut:
    """Return the same state, of which there must be some, in other shards and pages. Raises ``CodecError``."""
    clusters = read_clusters(image)
    topics = joined_topics(page.body for page in image.pages if page.page != CLUSTER_PAGE)
    states = resharded(clusters, topics, shards)
    made = Image(image.seq, [page for state in states for page in _pages(state, pages)])
    return LaidOut(made, clusters[0].shards, len(topics))


def _pages(state: State, pages: int) -> list[Page]:
    cluster = state.cluster
    assert isinstance(state.topics, MappedTopics)
    paged = PagedTopics(dict, cluster.shards, pages).changed(state.topics)
    bodies = [(CLUSTER_PAGE, encode_cluster(cluster)), *paged.changed_pages(state.topics, cluster.level)]
    return [Page(cluster.shard, page, body) for page, body in bodies]


def _said(name: str, value: int, settings: Settings, found: str) -> str:
    where = f"the state on {settings.bus_name} ('isrflow reshard' and 'isrflow run --reshard' lay it out again)"
    return f"{name} is {value}, which does not fit {where}: {found}"


def _layout(image: Image) -> tuple[int | None, Places]:
    """Return the number of shards, None if there is no state yet, and the page of each topic's slices."""
    shards, places = None, Places()
    for page in image.pages:
        try:
            if page.page != CLUSTER_PAGE:
                places |= {(one.topic, one.nth): page.page for one in decode_slices(page.body)}
            else:
                shards = decode_cluster(page.body).shards
        except LevelError:
            raise
        except CodecError as error:
            raise CodecError(f"shard {page.shard}, page {page.page}: {error}") from error
    return shards, places


def _pages_of(places: Places, shards: int) -> int | None:
    """Return a number of pages that puts every topic on the page where it is, perhaps not the original number.

    A topic's first slice is on page ``hash % pages``. So the number is greater than each such page, and divides each
    hash minus its page. Consecutive slices of a topic are this many pages apart.
    """
    for (topic, nth), page in places.items():
        if nth > 0 and (topic, 0) in places:
            return (page - places[topic, 0]) // nth
    common = math.gcd(*(topic_hash(topic) // shards - page for (topic, _), page in places.items()))
    least = max(places.values()) + 1
    candidates = (Settings().pages, *range(least, min(common or least, _PAGES_MAX) + 1))
    return next((pages for pages in candidates if pages >= least and common % pages == 0), None)
