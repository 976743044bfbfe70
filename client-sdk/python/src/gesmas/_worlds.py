"""What the two faces of the client do in their own way: connections, pauses, work on the side.

Everything else is written once, as coroutines over a ``World``. In the plain world nothing ever suspends:
what would wait blocks the thread instead, so ``run`` drives such a coroutine to its end without a loop.
Invariants: closing a stream wakes its reader; a task that is cancelled ends as cancelled, and no result takes
the place of that (which ``asyncio.wait_for`` does before Python 3.12); what is dropped anywhere, in any thread, is
handed to the world without waiting for anything.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ._clock import now
from ._forks import inherited

T = TypeVar("T")
_LOOK = 1.0
"""Timers stand still while some machines sleep: the clock is looked at this often."""
_LAST_WORDS = 6.0
"""How long last words hold up their caller."""
_ENDLESS = 1e6
"""Times from here on are no bound: no timer counts them."""


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

    def abandon(self) -> None:
        """Lets go of it in a child, without a trace on the connection, which the parent has."""
        ...


class Signal(Protocol):
    """Something that happens once."""

    def set(self) -> None: ...

    def is_set(self) -> bool: ...

    async def wait(self, seconds: float) -> bool:
        """Tells whether it has happened, after a second at the latest."""
        ...


class World(Protocol):
    """See the head of the file."""

    async def connect(self, host: str, port: int, tls: bool, until: float) -> Stream: ...

    async def pause(self, seconds: float) -> None: ...

    def signal(self) -> Signal: ...

    def aside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs something that nobody waits for."""
        ...

    def last_words(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs something whose caller is being cancelled, and holds it up for a short time at most."""
        ...

    def expect_drops(self) -> None:
        """Gets ready for ``dropped``."""
        ...

    def dropped(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Runs something aside, from wherever: while garbage is collected, in any thread."""
        ...

    def expect_no_more(self) -> None:
        """The client is closed: nothing that is dropped from now on matters."""
        ...

    def renew(self) -> None:
        """Forgets what the parent of this process has."""
        ...


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of the plain world to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a coroutine of the plain world suspended")


def _left(until: float) -> float | None:
    """Seconds as timers take them."""
    left = until - now()
    return None if left > _ENDLESS else max(0.001, left)


async def ends(signal: Signal, at: float) -> bool:
    """Waits until something happens, or until a time, by the clock that counts sleep; tells whether it has
    happened."""
    while not signal.is_set() and (left := at - now()) > 0:
        await signal.wait(left)
    return signal.is_set()


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

    def abandon(self) -> None:
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
        return self._event.wait(min(max(0.0, seconds), _LOOK))


Dropped = queue.SimpleQueue["tuple[Callable[[], Coroutine[Any, Any, None]], str] | None"]
"""What was dropped; none at the end."""


class PlainWorld:
    """Threads that block."""

    def __init__(self) -> None:
        self._dropped: Dropped
        self.renew()

    def renew(self) -> None:
        self._dropped = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._sweeps = False

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

    def last_words(self, work: Coroutine[Any, Any, None], name: str) -> None:
        # In a thread of its own: a second Ctrl-C ends the wait for it, and not it.
        thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
        thread.start()
        thread.join(_LAST_WORDS)

    def expect_drops(self) -> None:
        with self._guard:
            if not self._sweeps:
                self._sweeps = True
                sweep = threading.Thread(
                    target=self._sweep, args=(self._dropped,), name="gesmas-dropped", daemon=True
                )
                sweep.start()

    def _sweep(self, dropped: Dropped) -> None:
        while (found := dropped.get()) is not None:
            work, name = found
            self.aside(work(), name)

    def expect_no_more(self) -> None:
        with self._guard:
            self._sweeps = False
            self._dropped.put(None)
            self._dropped = queue.SimpleQueue()

    def dropped(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        # The one way into another thread that takes no lock of Python's own.
        self._dropped.put((work, name))


# -- asyncio --------------------------------------------------------------------------------------


class AsyncStream:
    """A stream of asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def _in_time(self, work: Awaitable[T], until: float) -> T:
        """Breaks the connection when the time is up. What is awaited is awaited in the caller's own task, so that
        a cancellation cannot get lost between two tasks."""
        late = asyncio.Event()

        def break_off() -> None:
            late.set()
            self.close()

        left = _left(until)
        timer = None if left is None else asyncio.get_running_loop().call_later(left, break_off)
        try:
            result = await work
        except OSError:
            if not late.is_set():
                raise
        else:
            if not late.is_set():
                return result
        finally:
            if timer is not None:
                timer.cancel()
        raise asyncio.TimeoutError

    async def send(self, data: bytes, until: float) -> None:
        self._writer.write(data)
        await self._in_time(self._writer.drain(), until)

    async def receive(self, until: float) -> bytes:
        return await self._in_time(self._reader.read(65_536), until)

    def close(self) -> None:
        # Not in good order: there is nothing left to say, and the reader must wake at once.
        self._writer.transport.abort()

    def abandon(self) -> None:
        inherited.append(self)


class TaskSignal:
    """An event for tasks."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        waits = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((waits,), timeout=min(max(0.0, seconds), _LOOK))
        finally:
            waits.cancel()
        return self._event.is_set()


class AsyncWorld:
    """Tasks of asyncio."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]]
        self._loop: asyncio.AbstractEventLoop | None
        self.renew()

    def renew(self) -> None:
        self._tasks, self._loop = set(), None

    async def connect(self, host: str, port: int, tls: bool, until: float) -> Stream:
        context = ssl.create_default_context() if tls else None
        opening = asyncio.ensure_future(asyncio.open_connection(host, port, ssl=context))
        try:
            await asyncio.wait((opening,), timeout=_left(until))
        except BaseException:
            opening.cancel()
            opening.add_done_callback(_close_late)
            raise
        if not opening.done():
            opening.cancel()
            opening.add_done_callback(_close_late)
            raise asyncio.TimeoutError
        return AsyncStream(*opening.result())

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def signal(self) -> Signal:
        return TaskSignal()

    def aside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def last_words(self, work: Coroutine[Any, Any, None], name: str) -> None:
        # The caller is being cancelled and must not wait; closing the client does (``finish``).
        self.aside(work, name)

    def expect_drops(self) -> None:
        self._loop = asyncio.get_running_loop()

    def expect_no_more(self) -> None:
        self._loop = None

    def dropped(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.aside(work(), name))

    async def finish(self, seconds: float) -> None:
        """Waits for what runs on the side, which has been told to end."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def _close_late(opening: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[1].transport.abort()
