"""When each broker last fetched metadata, as the active controller tells it each second (DescribeQuorum).

A broker that dies fetches no more, and one that is asked to stop fetches until it may. The metadata log does not say
which of the two it was. The times are those of the controller's clock, like the times of its batches.
"""

import asyncio
from collections import deque
from collections.abc import Mapping

import structlog

from brokers.shadow.controller_line import DESCRIBE_QUORUM, ControllerLine, UnfitServerError, describe_quorum_values
from brokers.shadow.quorum import LOST, Quorum
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values

logger = structlog.get_logger()

INTERVAL_S = 1.0
ANSWERS_MAX = 64
# An older answer says nothing about a time.
ANSWER_AGE_MS_MAX = 2_000


class RefusedQuestionError(Exception):
    """The controller does not answer this reader's DescribeQuorum."""


class FetchTimes:
    """The newest answers: at which time each node had last fetched, in milliseconds."""

    def __init__(self) -> None:
        self._answers: deque[tuple[int, Mapping[int, int]]] = deque(maxlen=ANSWERS_MAX)

    def note(self, told: Mapping[int, int]) -> None:
        """Take an answer. The active controller, which does not fetch, tells its own time instead."""
        if told:
            self._answers.append((max(told.values()), told))

    def silent_ms(self, node: int, time_ms: int) -> int | None:
        """Return for how long a node had not fetched at a time; None if that is not known.

        A fetch after that time proves nothing: the node may have started again.
        """
        for asked_ms, told in reversed(self._answers):
            if asked_ms < time_ms - ANSWER_AGE_MS_MAX:
                break
            if 0 <= told.get(node, -1) <= time_ms:
                return time_ms - told[node]
        return None


async def keep_asking(quorum: Quorum, times: FetchTimes) -> None:
    """Ask the active controller once a second, forever. Give up if it refuses, because it logs each refusal."""
    line: ControllerLine | None = None
    try:
        while True:
            leader = quorum.leader
            try:
                if line is not None and (line.endpoint != leader or line.is_due):
                    line.close()
                    line = None
                if leader is not None:
                    line = line or await ControllerLine.open(leader, quorum.client)
                    times.note(_told(await line.ask(DESCRIBE_QUORUM, describe_quorum_values())))
            except LOST:
                # The reader finds the next controller.
                line = None
            except (RefusedQuestionError, UnfitServerError) as error:
                logger.warning("no evidence of when brokers fetched", why=str(error))
                return
            await asyncio.sleep(INTERVAL_S)
    finally:
        if line is not None:
            line.close()


def _told(response: Values) -> dict[int, int]:
    [topic] = response["Topics"] or [{"Partitions": []}]
    [partition] = topic["Partitions"] or [{"ErrorCode": 0, "CurrentVoters": [], "Observers": []}]
    code = response["ErrorCode"] or partition["ErrorCode"]
    if code in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        raise RefusedQuestionError("the principal may not describe the quorum: it needs DESCRIBE on the cluster")
    if code:
        return {}
    return {
        one["ReplicaId"]: one["LastFetchTimestamp"] for one in [*partition["CurrentVoters"], *partition["Observers"]]
    }
