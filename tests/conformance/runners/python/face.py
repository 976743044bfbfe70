"""The two faces of the Python client under one: what cases are written against.

The face of asyncio is used as it is. The plain one is used in threads: whatever is a coroutine function in the other
face is called in a thread of its own and awaited. So both must have the same names.
"""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gesmas
import gesmas.aio

_THREADS = ThreadPoolExecutor(max_workers=200, thread_name_prefix="case")
_WRAPPED = (
    gesmas.Caller, gesmas.Events, gesmas.Guard, gesmas.Lock, gesmas.RwLock, gesmas.Queue, gesmas.Counter,
    gesmas.Barrier, gesmas.Semaphore, gesmas.Election, gesmas.Membership, gesmas.Lease,
)  # fmt: skip


async def in_thread(work: Any, *arguments: Any, **named: Any) -> Any:
    loop = asyncio.get_running_loop()
    return wrap(await loop.run_in_executor(_THREADS, lambda: work(*arguments, **named)))


def wrap(value: Any) -> Any:
    return Plain(value) if isinstance(value, _WRAPPED) else value


def unwrap(value: Any) -> Any:
    return value.inner if isinstance(value, Plain) else value


class Plain:
    """Something of the plain face, with the manners of the other."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not callable(value):
            return wrap(value)
        other = getattr(getattr(gesmas.aio, type(self.inner).__name__), name, None)
        if name == "session" or inspect.iscoroutinefunction(other):
            return lambda *arguments, **named: in_thread(value, *map(unwrap, arguments), **named)
        return lambda *arguments, **named: wrap(value(*map(unwrap, arguments), **named))

    async def length(self) -> Any:
        return await in_thread(len, self.inner)

    async def __aenter__(self) -> Any:
        return await in_thread(self.inner.__enter__)

    async def __aexit__(self, *error: Any) -> None:
        await in_thread(self.inner.__exit__, *error)

    def __aiter__(self) -> Plain:
        return self

    async def __anext__(self) -> Any:
        # A StopIteration does not pass through a future.
        found = await in_thread(next, self.inner, None)
        if found is None:
            raise StopAsyncIteration
        return found


class Face:
    """A face, by its name."""

    def __init__(self, name: str, endpoints: list[str]) -> None:
        self.plain = name == "plain"
        self.module: Any = gesmas if self.plain else gesmas.aio
        self.endpoints = endpoints

    def client(self, *endpoints: str, **options: Any) -> Any:
        return wrap(self.module.Client(*(endpoints or self.endpoints), **options))

    def handle(self, kind: str, caller: Any, name: str) -> Any:
        """A handle of a standard class."""
        return wrap(getattr(self.module, kind)(unwrap(caller), name))

    async def fate_of(self, error: BaseException) -> gesmas.Fate | None:
        if self.plain:
            return await in_thread(gesmas.fate_of, error)
        return await gesmas.aio.fate_of(error)

    async def give_up(self, task: asyncio.Task[Any], client: Any) -> None:
        """Gives up a call: a task is cancelled; a thread cannot be, so its client is closed."""
        if self.plain:
            await client.close()
        else:
            task.cancel()
        try:
            await task
        except (asyncio.CancelledError, gesmas.Closed):
            return
        raise AssertionError("a call that was given up had a result")
