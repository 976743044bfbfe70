"""What all cases use: the world of a case, and the line to whoever runs the cases."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import gesmas

from face import Face

PATIENCE = 60.0
E = TypeVar("E", bound=BaseException)

CASES: dict[str, Callable[["World"], Awaitable[None]]] = {}


def case(work: Callable[["World"], Awaitable[None]]) -> Callable[["World"], Awaitable[None]]:
    """A case: its function is called as the list calls it, with underscores."""
    CASES[work.__name__.replace("_", "-")] = work
    return work


class Line:
    """The line to whoever runs the cases. One question at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        # What examples print is not for whoever runs the cases.
        self._output, sys.stdout = sys.stdout, sys.stderr

    def say(self, **what: Any) -> None:
        print(json.dumps(what), file=self._output, flush=True)

    def note(self, what: str) -> None:
        """Something to read when a case fails."""
        print(what, file=sys.stderr, flush=True)

    async def listen(self) -> str:
        return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

    async def ask(self, what: str, **more: Any) -> Any:
        async with self._lock:
            self.say(ask=what, **more)
            return json.loads(await self.listen())["answer"]


class World:
    """What a case has: a face, a client of all replicas, names of its own."""

    def __init__(self, face: Face, line: Line, name: str) -> None:
        self.face, self.line, self.name = face, line, name
        self.client = face.client()
        self._clients = [self.client]

    def other_client(self, *endpoints: str, **options: Any) -> Any:
        client = self.face.client(*endpoints, **options)
        self._clients.append(client)
        return client

    def object(self, class_name: str) -> str:
        return f"{class_name}/{self.name}-{self.face.module.__name__}"

    def handle(self, kind: str, caller: Any) -> Any:
        return self.face.handle(kind, caller, self.object(kind).partition("/")[2])

    async def echo(self, mark: int = 7) -> str:
        """An object of the class Echo."""
        await self.client.create(self.object("Echo"), mark=mark)
        return self.object("Echo")

    async def queue(self, capacity: int = 16) -> str:
        await self.client.create(self.object("Queue"), capacity=capacity)
        return self.object("Queue")

    @asynccontextmanager
    async def session(self, client: Any = None, **options: Any) -> Any:
        session = await (client or self.client).session(**options)
        try:
            yield session
        finally:
            await session.close()

    async def blocked(self, target: str, count: int) -> None:
        """Waits until so many calls are blocked in an object."""

        async def is_so() -> bool:
            return len(await self.client.blocked(target)) == count

        await until(f"{count} blocked calls in {target}", is_so)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


async def until(what: str, look: Callable[[], Awaitable[bool]]) -> None:
    """Looks again and again until it is so."""
    end = time.monotonic() + PATIENCE
    while not await look():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come to be")


async def fails(kind: type[E], work: Awaitable[Any]) -> E:
    """The error of exactly this kind that something ends with."""
    try:
        result = await asyncio.wait_for(work, PATIENCE)
    except gesmas.GesmasError as error:
        if type(error) is kind:
            return error
        raise
    raise AssertionError(f"{kind.__name__} was expected, and there is a result: {result!r}")


def equal(found: Any, wanted: Any) -> None:
    if found != wanted or type(found) is not type(wanted):
        raise AssertionError(f"{found!r} was found, not {wanted!r}")


def start(work: Awaitable[Any]) -> asyncio.Task[Any]:
    async def run() -> Any:
        return await work

    return asyncio.create_task(run())


async def soon(task: asyncio.Task[Any]) -> Any:
    """The result of a task, within the bound."""
    return await asyncio.wait_for(task, PATIENCE)
