"""What stands in the active controller's file, as far as the rules for partitions read it.

The metadata log has dynamic settings only. A controller tells its own to a principal with DESCRIBE_CONFIGS, once at the
beginning and again when another one is active.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from brokers.shadow.controller_line import (
    DESCRIBE_CONFIGS,
    ControllerLine,
    Endpoint,
    UnfitServerError,
    describe_configs_values,
)
from brokers.shadow.quorum import LOST, Quorum
from brokers.wire.schema import Values
from brokers.wire.security.connecting import Client, NotLetInError
from state.policy import BROKER_NAMES

logger = structlog.get_logger()

INTERVAL_S = 0.5
FIRST_ANSWER_S = 3.0
# Kafka's ConfigSource: of the file, and where the file says nothing.
_STATIC, _DEFAULT = 4, 5


class RefusedSettingsError(Exception):
    """The controller does not tell this reader its settings."""


class StaticSettings:
    """The questions to each active controller."""

    def __init__(self) -> None:
        self._answered = asyncio.Event()

    async def first_answer(self) -> None:
        """Wait for the first answer, or for as long as it may take."""
        try:
            async with asyncio.timeout(FIRST_ANSWER_S):
                await self._answered.wait()
        except TimeoutError:
            logger.info("the controller has not told the settings of its file yet")

    async def keep_asking(self, quorum: Quorum, tell: Callable[[int, Mapping[str, str]], Awaitable[None]]) -> None:
        """Ask each active controller once, and ``tell`` what it answers. Give up if one refuses."""
        asked = None
        try:
            while True:
                leader, controller = quorum.leader, quorum.leader_id
                if leader is not None and controller >= 0 and (leader, controller) != asked:
                    found = await static_settings_of(leader, quorum.client, controller)
                    if found is not None:
                        await tell(controller, found)
                        self._answered.set()
                        asked = leader, controller
                await asyncio.sleep(INTERVAL_S)
        except (RefusedSettingsError, UnfitServerError, NotLetInError) as error:
            logger.info("the settings of the controllers' files are not known", why=str(error))
            self._answered.set()


async def static_settings_of(leader: Endpoint, client: Client, controller: int) -> Mapping[str, str] | None:
    """Return what a controller answers; None if it does not, and another one may be active."""
    try:
        line = await ControllerLine.open(leader, client)
        try:
            return found_in(await line.ask(DESCRIBE_CONFIGS, describe_configs_values(controller, BROKER_NAMES)))
        finally:
            line.close()
    except LOST as error:
        logger.info(
            "a controller does not tell its settings now",
            controller=str(leader),
            why=str(error) or type(error).__name__,
        )
        return None


def found_in(response: Values) -> Mapping[str, str]:
    """Return the settings of the file, or their defaults."""
    results = response["Results"]
    if len(results) != 1 or results[0]["ErrorCode"]:
        said = [one["ErrorMessage"] or one["ErrorCode"] for one in results]
        raise RefusedSettingsError(
            f"the controller answers {said}: the principal needs DESCRIBE_CONFIGS on the cluster"
        )
    found = {}
    for config in results[0]["Configs"]:
        below = [*config["Synonyms"], {"Value": config["Value"], "Source": config["ConfigSource"]}]
        values = [one["Value"] for one in below if one["Source"] in (_STATIC, _DEFAULT)]
        if values and values[0] is not None:
            found[config["Name"]] = values[0]
    return found
