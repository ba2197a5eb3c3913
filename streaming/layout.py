"""How the state on a bus is laid out, in shards and pages: the settings must say the same."""

import math

from bus.interface import Image
from conf.settings import Settings
from state.codec import CodecError, decode_cluster, decode_slices
from state.ids import page_of, topic_hash
from state.shard_outcome import CLUSTER_PAGE

_PAGES_MAX = 1 << 20
Places = dict[tuple[str, int], int]


def misfit(image: Image, settings: Settings) -> str | None:
    """Say which setting to change before the state can be used; None when all fit.

    A topic is looked for on the page that the settings give it: under others it would be listed and not
    found, and could be made a second time. Raises ``CodecError`` naming the page that cannot be read.
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
    other = f"set pages = {pages}" if pages else "set pages to what it was when that was written"
    return _said("pages", settings.pages, settings, f"its topics are on other pages than these: {other}")


def _said(name: str, value: int, settings: Settings, found: str) -> str:
    return f"{name} is {value}, which does not fit the state on {settings.bus_name}: {found}"


def _layout(image: Image) -> tuple[int | None, Places]:
    """Read how many shards there are, None before there is any state, and the page of each topic's slices."""
    shards, places = None, Places()
    for page in image.pages:
        try:
            if page.page != CLUSTER_PAGE:
                places |= {(one.topic.topic, one.nth): page.page for one in decode_slices(page.body)}
            else:
                shards = decode_cluster(page.body).shards
        except CodecError as error:
            raise CodecError(f"shard {page.shard}, page {page.page}: {error}") from error
    return shards, places


def _pages_of(places: Places, shards: int) -> int | None:
    """Find a number of pages that puts every topic where it is: it is as good as the one that did.

    Such a number is greater than every first slice's page, and divides what that leaves of the number it was taken
    from. Two slices of a topic stand as many pages apart.
    """
    for (topic, nth), page in places.items():
        if nth > 0 and (topic, 0) in places:
            return (page - places[topic, 0]) // nth
    common = math.gcd(*(topic_hash(topic) // shards - page for (topic, _), page in places.items()))
    least = max(places.values()) + 1
    candidates = (Settings().pages, *range(least, min(common or least, _PAGES_MAX) + 1))
    return next((pages for pages in candidates if pages >= least and common % pages == 0), None)
