"""What the two faces of the client do in their own way: connections, pauses, work on the side.

Everything else is written once, as coroutines over a ``World``. In the plain world nothing ever suspends:
what would wait blocks the thread instead, so ``run`` drives such a coroutine to its end without a loop.
Invariant: nothing waits without a bound; closing a stream wakes whoever reads from it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


def _read_clock() -> float:
    # A machine that was asleep must not think that no time has passed: its sessions may be over.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


now = _read_clock


class Disconnected(Exception):
    """A connection failed. ``sent`` says whether the server may have got the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Stream(Protocol):
    """A connection, as bytes."""

    async def send(self, data: bytes, until: float) -> None: ...

    async def receive(self, until: float) -> bytes:
        """Some bytes; none at the end."""
        ...

    def close(self) -> None: ...


class Signal(Protocol):
    """Something that happens once."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    async def wait(self, seconds: float) -> bool: ...


class World(Protocol):
    """See the head of the file."""

    async def connect(self, host: str, port: int, tls: bool, until: float) -> Stream: ...

    async def pause(self, seconds: float) -> None: ...

    def signal(self) -> Signal: ...

    def aside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs something that nobody waits for."""
        ...

    def last_words(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something short whose caller is being cancelled."""
        ...


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of the plain world to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a coroutine of the plain world suspended")


def _left(until: float) -> float:
    return max(0.001, until - now())


# -- plain ----------------------------------------------------------------------------------------


class BlockingStream:
    """A socket that blocks."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    async def send(self, data: bytes, until: float) -> None:
        self._socket.settimeout(_left(until))
        self._socket.sendall(data)

    async def receive(self, until: float) -> bytes:
        self._socket.settimeout(_left(until))
        return self._socket.recv(65_536)

    def close(self) -> None:
        try:
            # Closing alone would not wake a thread that reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


class ThreadSignal:
    """An event for threads."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        return self._event.wait(seconds)


class PlainWorld:
    """Threads that block."""

    async def connect(self, host: str, port: int, tls: bool, until: float) -> Stream:
        connection = socket.create_connection((host, port), timeout=_left(until))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            connection = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        return BlockingStream(connection)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def signal(self) -> Signal:
        return ThreadSignal()

    def aside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        threading.Thread(target=run, args=(work,), name=name, daemon=True).start()

    def last_words(self, work: Coroutine[Any, Any, None]) -> None:
        run(work)


# -- asyncio --------------------------------------------------------------------------------------


class AsyncStream:
    """A stream of asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes, until: float) -> None:
        self._writer.write(data)
        await asyncio.wait_for(self._writer.drain(), _left(until))

    async def receive(self, until: float) -> bytes:
        return await asyncio.wait_for(self._reader.read(65_536), _left(until))

    def close(self) -> None:
        # Not in good order: there is nothing left to say, and the reader must wake at once.
        self._writer.transport.abort()


class TaskSignal:
    """An event for tasks."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        try:
            return await asyncio.wait_for(self._event.wait(), max(0.0, seconds))
        except asyncio.TimeoutError:
            return False


class AsyncWorld:
    """Tasks of asyncio."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, host: str, port: int, tls: bool, until: float) -> Stream:
        context = ssl.create_default_context() if tls else None
        opening = asyncio.open_connection(host, port, ssl=context)
        reader, writer = await asyncio.wait_for(opening, _left(until))
        return AsyncStream(reader, writer)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def signal(self) -> Signal:
        return TaskSignal()

    def aside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def last_words(self, work: Coroutine[Any, Any, None]) -> None:
        # The caller is being cancelled and must not wait; who closes the client does (``finish``).
        self.aside(work, "gesmas-withdrawal")

    async def finish(self, seconds: float) -> None:
        """Waits for what runs on the side, which has been told to end."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
