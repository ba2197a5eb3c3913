"""Connections before a server's door: how many, of whom, and how long."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from brokers.wire.admission import Admission
from brokers.wire.server import Limits, NotAuthenticatedError, Peer, Server

WORD = b"\x00\x00\x00\x01x"


class Door:
    """A door that lets in clients that send a byte other than 'n'."""

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        if await reader.readexactly(1) == b"n":
            raise NotAuthenticatedError("n")
        return "User:a"


async def echo(frame: bytes, peer: Peer) -> bytes:
    return peer.principal.encode()


def test_a_client_that_does_not_authenticate_is_cut_off_in_time_and_others_are_served() -> None:
    async def run() -> None:
        gone: list[Peer] = []
        server = Server(echo, Limits(authentication_timeout_ms=300), gone.append, Door())
        port = await server.start("127.0.0.1", 0)
        try:
            silent, silent_writer = await asyncio.open_connection("127.0.0.1", port)
            wrong, wrong_writer = await asyncio.open_connection("127.0.0.1", port)
            wrong_writer.write(b"n" + WORD)
            right, right_writer = await asyncio.open_connection("127.0.0.1", port)
            right_writer.write(b"y" + WORD)
            async with asyncio.timeout(30):
                assert await right.readexactly(6) == b"User:a"
                for reader in (silent, wrong):
                    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                        await reader.readexactly(1)
                right_writer.write(WORD)
                assert await right.readexactly(6) == b"User:a", "the time is for the proof only"
            assert gone == [], "no connection with a principal has ended yet"
            for writer in (silent_writer, wrong_writer, right_writer):
                writer.close()
        finally:
            await server.stop()
        assert [peer.principal for peer in gone] == ["User:a"]

    asyncio.run(run())


def test_connections_of_one_host_are_limited() -> None:
    async def run() -> None:
        server = Server(echo, Limits(max_connections_per_ip=2))
        port = await server.start("127.0.0.1", 0)
        async with AsyncExitStack() as stack, asyncio.timeout(30):
            stack.push_async_callback(server.stop)
            for number in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                writer.write(WORD)
                if number < 2:
                    # An empty answer to an empty name.
                    await asyncio.sleep(0)
                else:
                    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                        await reader.readexactly(1)

    asyncio.run(run())


def test_the_host_with_the_most_silent_connections_loses_them_first() -> None:
    async def run() -> None:
        admission = Admission(total_max=100, host_max=100, unauthenticated_max=4)

        async def wait() -> None:
            await asyncio.sleep(600)

        tasks = [asyncio.create_task(wait()) for _ in range(8)]
        honest, hostile = tasks[0], tasks[1:]
        assert admission.enter(honest, "10.0.0.1", is_authenticated=False)
        for task in hostile:
            assert admission.enter(task, "10.0.0.2", is_authenticated=False)
        await asyncio.sleep(0)
        assert [task.cancelled() for task in tasks] == [False, True, True, True, True, False, False, False]
        admission.authenticated(honest)
        for task in tasks:
            admission.leave(task)
            task.cancel()
        assert admission.tasks == []

    asyncio.run(run())
