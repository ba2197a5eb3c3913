"""How the state on a bus is laid out, in shards and pages: the settings must say the same."""

import math

from isrflow.bus.interface import Image
from isrflow.conf.settings import Settings
from isrflow.state.codec import decode_cluster, decode_topics
from isrflow.state.ids import page_of, topic_hash
from isrflow.state.shard_outcome import CLUSTER_PAGE

_PAGES_MAX = 1 << 20


def misfit(image: Image, settings: Settings) -> str | None:
    """Say which setting to change before the state can be used; None when all fit.

    A topic is looked for on the page that the settings give it: under others it would be listed and not
    found, and could be made a second time.
    """
    shards, places = _layout(image)
    if shards not in (None, settings.shards):
        return _said("shards", settings.shards, settings, f"it is in {shards} shards: set shards = {shards}")
    if all(page_of(topic, settings.shards, settings.pages) == page for topic, page in places.items()):
        return None
    pages = _pages_of(places, settings.shards)
    other = f"set pages = {pages}" if pages else "set pages to what it was when that was written"
    return _said("pages", settings.pages, settings, f"its topics are on other pages than these: {other}")


def _said(name: str, value: int, settings: Settings, found: str) -> str:
    return f"{name} is {value}, which does not fit the state on {settings.bus_name}: {found}"


def _layout(image: Image) -> tuple[int | None, dict[str, int]]:
    """Read how many shards there are, None before there is any state, and each topic's page."""
    shards, places = None, dict[str, int]()
    for page in image.pages:
        if page.page != CLUSTER_PAGE:
            places |= {topic.topic: page.page for topic in decode_topics(page.body)}
        elif page.shard == 0:
            shards = decode_cluster(page.body).shards
    return shards, places


def _pages_of(places: dict[str, int], shards: int) -> int | None:
    """Find a number of pages that puts every topic where it is: it is as good as the one that did.

    Such a number is greater than every page, and divides what a topic's page leaves of the number it was taken from.
    """
    common = math.gcd(*(topic_hash(topic) // shards - page for topic, page in places.items()))
    least = max(places.values()) + 1
    candidates = (Settings().pages, *range(least, min(common or least, _PAGES_MAX) + 1))
    return next((pages for pages in candidates if pages >= least and common % pages == 0), None)
