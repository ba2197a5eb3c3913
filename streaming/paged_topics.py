"""A shard's topics in pages, each loaded when it is first asked for."""

from collections.abc import Iterable
from typing import Protocol

from isrflow.state.cluster import Changes
from isrflow.state.codec import decode_topics, encode_topics
from isrflow.state.ids import page_of, without_collisions
from isrflow.state.partition import Topic


class PageStore(Protocol):
    """Keep pages of bytes by number."""

    def load(self, page: int) -> bytes | None: ...
    def load_all(self) -> Iterable[tuple[int, bytes]]: ...


class PagedTopics:
    """Implement ``state.cluster.Topics`` over a page store.

    Only pages that an event needs are read: a heartbeat reads none. ``changed`` gives a view over
    the same pages; ``changed_pages`` says what must be stored for it.
    """

    def __init__(self, store: PageStore, shards: int, pages: int) -> None:
        self._store = store
        self._shards = shards
        self._pages = pages
        self._loaded: dict[int, dict[str, Topic]] = {}
        self._all = False

    def _page(self, page: int) -> dict[str, Topic]:
        topics = self._loaded.get(page)
        if topics is None:
            body = None if self._all else self._store.load(page)
            topics = {topic.topic: topic for topic in decode_topics(body)} if body is not None else {}
            self._loaded[page] = topics
        return topics

    def get(self, topic: str, /) -> Topic | None:
        return self._page(page_of(topic, self._shards, self._pages)).get(topic)

    def names(self) -> list[str]:
        if not self._all:
            for page, body in self._store.load_all():
                if page not in self._loaded:
                    self._loaded[page] = {topic.topic: topic for topic in decode_topics(body)}
            self._all = True
        return sorted(name for topics in self._loaded.values() for name in topics)

    def twin_of(self, topic: str, /) -> str | None:
        """Look in one page: names that collide hash alike."""
        unified = without_collisions(topic)
        page = self._page(page_of(topic, self._shards, self._pages))
        return next((name for name in page if without_collisions(name) == unified), None)

    def changed(self, changes: Changes, /) -> "PagedTopics":
        after = PagedTopics(self._store, self._shards, self._pages)
        after._all = self._all
        after._loaded = dict(self._loaded)
        copied: set[int] = set()
        for name, topic in changes.items():
            page = page_of(name, self._shards, self._pages)
            if page not in copied:
                after._loaded[page] = dict(after._page(page))
                copied.add(page)
            if topic is None:
                after._loaded[page].pop(name, None)
            else:
                after._loaded[page][name] = topic
        return after

    def changed_pages(self, changes: Changes) -> list[tuple[int, bytes]]:
        """Encode the pages that ``changes`` touched; an empty page is stored as no topics."""
        pages = sorted({page_of(name, self._shards, self._pages) for name in changes})
        return [(page, encode_topics([t for _, t in sorted(self._page(page).items())])) for page in pages]
