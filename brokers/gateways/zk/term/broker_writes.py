"""Topics and settings that brokers write into ZooKeeper for clients. They become requests to the engine.

In ZooKeeper mode a broker makes internal topics and changes settings by itself, without asking the controller. It may
pick any broker that it knows for a replica, even the gateway. The engine then assigns replicas instead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Set

import structlog

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.call import Call
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror.mirror import Changes, Mirror
from brokers.gateways.zk.mirror.stored import topic_config
from brokers.gateways.zk.znodes import TopicZnode, ZnodeError
from bus.clock import now_ms
from state.decisions import Answer
from state.events import AlterConfig, CreateTopic
from state.limits import Config
from state.policy import BROKER_NAMES

logger = structlog.get_logger()

READS_MAX = 10
# The pause before the engine is asked again, if it did not answer in time.
ASK_AGAIN_S = 0.5


class BrokerWrites:
    """The topics and settings that brokers wrote, until the engine has decided about them."""

    def __init__(
        self,
        gateways: frozenset[int],
        engine: EngineClient,
        view: ClusterView,
        mirror: Mirror,
        session: Session,
        call: Call,
        write: Callable[[Changes], Awaitable[None]],
    ) -> None:
        self._gateways = gateways
        self._engine = engine
        self._view = view
        self._mirror = mirror
        self._session = session
        self._call = call
        self._write = write
        self._asked: set[str] = set()
        # The notes on changed settings that were seen.
        self._notes: set[str] = set()
        # The topics whose settings a broker changed, those that ``alter_config`` works on, and those of them that the
        # engine has not answered.
        self._changed: set[str] = set()
        self._altering: set[str] = set()
        self._unanswered: set[str] = set()
        # The questions whose missing answer is in the log.
        self._logged: set[Hashable] = set()

    async def begin(self) -> None:
        """Skip the notes that are there when a term begins, because the engine's settings replace those.

        The term reads settings after this call, so a change in between is in the settings or in a later note.
        """
        self._notes = set(await self._call(self._session.children, znodes.CONFIG_CHANGES))

    async def new_topics(self) -> list[str]:
        """Name the topics that brokers wrote, each once until ``ask_for`` has dealt with it."""
        there = await self._call(self._session.children, znodes.TOPICS, True)
        unknown = [name for name in there if name not in self._view.topics and name not in self._mirror.topics]
        found = dict.fromkeys([*unknown, *self._mirror.strangers(self._view)])
        new = [name for name in found if name not in self._asked]
        self._asked.update(new)
        return new

    async def ask_for(self, name: str) -> None:
        """Ask the engine for a topic that a broker wrote. A refused one is removed."""
        path = znodes.topic_path(name)
        try:
            held = await self._call(self._session.read, path)
            config = await self._call(topic_config, self._session, name)
            is_led = await self._call(self._session.read, f"{path}/partitions") is not None
            # Brokers do not make ``partitions/``, so a topic that has it is being removed.
            if held is None or is_led or name in self._view.topics:
                return
            topic = znodes.topic_of(path, held[0])
            self._mirror.found(name, held[0], config, {})
            event = creation(name, topic, config or {}, self._gateways, now_ms())
            [answer] = await self._engine.ask(event, lane=Lane.ADMIN)
            logger.info("a topic that a broker made", topic=name, answer=answer.error, why=answer.message)
            if answer.error not in ("NONE", "TOPIC_ALREADY_EXISTS"):
                # Otherwise the broker would take the topic for made, and never ask again.
                self._mirror.forget(name)
                for one in (path, f"{znodes.TOPIC_CONFIGS}/{name}"):
                    await self._call(self._session.remove, one, whole=True)
            elif name in self._view.topics:
                # A note on its settings that came before the engine knew the topic was skipped.
                await self.alter_config(name)
        except (ZnodeError, NoAnswerError, QueueFullError) as error:
            logger.warning("a topic that a broker made is not created yet", topic=name, why=str(error))
        finally:
            self._asked.discard(name)

    async def changed_configs(self) -> list[tuple[str, str]]:
        """Name the entities whose settings brokers changed since the last call, as below ``/config``."""
        changed: list[tuple[str, str]] = []
        notes = set(await self._call(self._session.children, znodes.CONFIG_CHANGES, True))
        for name in sorted(notes - self._notes):
            path = f"{znodes.CONFIG_CHANGES}/{name}"
            held = await self._call(self._session.read, path)
            if held is not None:
                try:
                    changed.append(znodes.changed_entity_in(path, held[0]))
                except ZnodeError as error:
                    logger.warning("a note of a broker cannot be read", why=str(error))
        self._notes = notes
        return list(dict.fromkeys(changed))

    async def alter_config(self, topic: str) -> None:
        """Ask the engine for the settings that a broker wrote, until it answers. Refused settings are put back."""
        self._changed.add(topic)
        if topic in self._altering:
            # The call under way reads them again.
            return
        self._altering.add(topic)
        try:
            while topic in self._changed:
                self._changed.discard(topic)
                await self._alter(topic)
        finally:
            self._altering.discard(topic)
            self._unanswered.discard(topic)

    async def _alter(self, topic: str) -> None:
        asked: set[str] = set()
        # Settings are read again each time, because a broker may have written them again.
        while (found := await self._readable_config(topic)) is not None:
            event = alteration(topic, self._view.topics[topic].config, found, now_ms(), asked)
            if event is None:
                self._mirror.config_found(topic, found)
                return
            asked.update(event.config)
            self._unanswered.add(topic)
            answer = await self._ask(("alter_config", topic), event)
            if answer is not None:
                self._unanswered.discard(topic)
                if topic in self._view.topics:
                    self._mirror.config_found(topic, found)
                    if answer.error != "NONE":
                        logger.warning("settings are put back", topic=topic, error=answer.error, why=answer.message)
                    await self._write({topic: ()})
                return

    async def _readable_config(self, topic: str) -> dict[str, str] | None:
        """Read settings as ``_new_config`` does, and put unreadable ones back."""
        try:
            return await self._new_config(topic)
        except ZnodeError as error:
            logger.warning("settings are put back", topic=topic, why=str(error))
        self._unanswered.discard(topic)
        if topic in self._view.topics:
            self._mirror.found_settings(topic)
            await self._write({topic: ()})
        return None

    async def _new_config(self, topic: str) -> dict[str, str] | None:
        """Read the settings that a broker wrote; None if there is nothing to ask."""
        for _ in range(READS_MAX):
            written = self._mirror.config(topic)
            found = await self._call(topic_config, self._session, topic) or {}
            if written is self._mirror.config(topic):
                is_known = found == written and topic not in self._unanswered
                return None if is_known or topic not in self._view.topics else found
        # The engine's own changes are being written, so the settings that were read may be older.
        return None

    def hold_back(self) -> None:
        """Keep brokers' settings from being overwritten until the engine has answered."""
        for topic in self._unanswered & self._view.topics.keys():
            self._mirror.config_found(topic, self._view.topics[topic].config)

    async def _ask(self, key: Hashable, event: AlterConfig) -> Answer | None:
        """Return the engine's answer; None if there is none yet, after a pause."""
        try:
            [answer] = await self._engine.ask_once({key: event}, Lane.ADMIN)
        except (NoAnswerError, QueueFullError) as error:
            if key not in self._logged:
                logger.warning("settings that a broker wrote are not decided yet", of=key, why=str(error))
                self._logged.add(key)
            await asyncio.sleep(ASK_AGAIN_S)
            return None
        self._logged.discard(key)
        return answer

    async def follow_defaults(self, *, is_removal_known: bool = True) -> None:
        """Ask the engine for the settings of all brokers that rules act on, until it answers.

        With ``is_removal_known``, a missing setting was removed. When a term begins, it may never have been there.
        """
        asked: set[str] = set()
        while config := await self._new_defaults(asked, is_removal_known=is_removal_known):
            asked.update(config)
            answer = await self._ask("defaults", AlterConfig(time_ms=now_ms(), entity="cluster", config=config))
            if answer is not None:
                logger.info("settings of all brokers", config=config, answer=answer.error, why=answer.message)
                return

    async def _new_defaults(self, asked: Set[str], *, is_removal_known: bool) -> Config:
        held = await self._call(self._session.read, znodes.BROKER_DEFAULTS)
        try:
            found = znodes.config_of(znodes.BROKER_DEFAULTS, held[0]) if held is not None and held[0] else {}
        except ZnodeError as error:
            logger.warning("settings of all brokers cannot be read", why=str(error))
            return {}
        decided = self._view.decided_settings()
        return {
            name: found.get(name)
            for name in BROKER_NAMES
            if name in asked or (found.get(name) != decided.get(name) and (is_removal_known or name in found))
        }


def creation(
    name: str, znode: TopicZnode, config: dict[str, str], gateways: frozenset[int], time_ms: int
) -> CreateTopic:
    """Return the event that asks for a topic as a broker wrote it, or for one of its size if it names a gateway."""
    numbers = sorted(znode.partitions)
    named = {replica for replicas in znode.partitions.values() for replica in replicas}
    if named & gateways or numbers != list(range(len(numbers))):
        factor = max((len(replicas) for replicas in znode.partitions.values()), default=1)
        return CreateTopic(
            time_ms=time_ms, topic=name, partitions=len(numbers), replication_factor=factor, config=dict(config)
        )
    assignment = {str(number): znode.partitions[number] for number in numbers}
    return CreateTopic(time_ms=time_ms, topic=name, assignment=assignment, config=dict(config))


def alteration(
    topic: str, decided: Mapping[str, str], found: Mapping[str, str], time_ms: int, unanswered: Iterable[str] = ()
) -> AlterConfig | None:
    """Return the event that gives the engine a topic's settings as found in ZooKeeper; None if it has them.

    ``unanswered`` names settings that the engine may yet change, because it was asked before and has not answered.
    """
    changed: dict[str, str | None] = {name: value for name, value in found.items() if decided.get(name) != value}
    changed |= {name: None for name in decided if name not in found}
    changed |= {name: found.get(name) for name in unanswered}
    return AlterConfig(time_ms=time_ms, entity="topic", name=topic, config=dict(changed)) if changed else None
