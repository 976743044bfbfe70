"""Cases of processes that are forked from one that has a client."""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from collections.abc import Callable
from typing import Any

import gesmas
import gesmas.aio

from support import World, case, equal, soon, start

CHILDREN, CALLS = 3, 60


def fork(work: Callable[[], Any]) -> tuple[int, int]:
    """A child that does something and says its result; its number, and where it says it."""
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    try:
        said = {"result": work()}
    except BaseException:
        said = {"error": traceback.format_exc()}
    os.write(writes, json.dumps(said).encode())
    # Nothing of the parent's is ended by a child.
    os._exit(0)


async def result_of(child: int, reads: int) -> Any:
    def hear() -> bytes:
        with os.fdopen(reads, "rb") as pipe:
            said = pipe.read()
        os.waitpid(child, 0)
        return said

    said = json.loads(await soon(start(asyncio.to_thread(hear))))
    if "error" in said:
        raise AssertionError(said["error"])
    return said["result"]


def in_child(face: Any, work: Callable[[], Any]) -> Any:
    """Runs a coroutine of a child, which has no loop of its own yet."""
    return asyncio.new_event_loop().run_until_complete(work())


@case
async def child_starts_anew(world: World) -> None:
    """Parent and children use one client at once: each hears its own answers, and counts its own calls."""
    counter, client = world.object("Counter"), world.other_client()
    await client.call(f"{counter}-warm", "increment")

    async def count(label: int) -> list[int]:
        return [await client.call(f"{counter}-{label}", "increment") for _ in range(CALLS)]

    def work(label: int) -> Callable[[], Any]:
        if not world.face.plain:
            return lambda: in_child(world.face, lambda: count(label))
        # A thread of the parent is not there to be waited for: the calls are made in this one.
        return lambda: [client.inner.call(f"{counter}-{label}", "increment") for _ in range(CALLS)]

    children = [fork(work(label)) for label in range(1, CHILDREN + 1)]
    equal(await count(0), list(range(1, CALLS + 1)))
    for child in children:
        equal(await result_of(*child), list(range(1, CALLS + 1)))
    for label in range(CHILDREN + 1):
        equal(await world.client.call(f"{counter}-{label}", "get"), CALLS)


@case
async def child_holds_nothing(world: World) -> None:
    """A session, a handle and a guard of the parent say in a child whose they are, and the child ends none."""
    client = world.other_client()
    name = world.object("Lock").partition("/")[2]
    async with world.session(client) as session:
        lock = session.lock(name)
        async with lock as held:

            def uses() -> dict[str, Callable[[], Any]]:
                plain = world.face.plain
                s, k, h = (session.inner, lock.inner, held.inner) if plain else (session, lock, held)
                return {
                    "call": lambda: s.call(f"Lock/{name}", "holder"),
                    "state": lambda: s.state,
                    "is_lost": lambda: s.is_lost,
                    "keep_alive": s.keep_alive,
                    "new_owner": s.new_owner,
                    "close": s.close,
                    "acquire": k.acquire,
                    "release": h.release,
                    "check": h.check,
                    "guard is_lost": lambda: h.is_lost,
                }

            def work() -> list[str]:
                return in_child(world.face, tried)

            async def tried() -> list[str]:
                silent = []
                for what, use in uses().items():
                    try:
                        found = use()
                        if asyncio.iscoroutine(found):
                            await found
                        silent.append(what)
                    except gesmas.Forked:
                        pass
                return silent

            equal(await result_of(*fork(work)), [])
            # What the parent has it still has, and it hears from the cluster as before.
            await session.keep_alive()
            held.check()
            equal((await lock.holder()).token, held.token)
            equal(await result_of(*fork(lambda: in_child(world.face, lambda: _alone(world, client, name)))), None)
        assert await world.client.call(f"Lock/{name}", "holder") is None


async def _alone(world: World, client: Any, name: str) -> None:
    """In a child: a session of its own is excluded by the parent's lock."""
    plain = world.face.plain
    opened = client.inner.session() if plain else await client.session()
    taken = opened.lock(name).acquire(timeout=0)
    if not plain:
        taken = await taken
    if taken is not None:
        raise AssertionError("two processes have the lock")
    closed = opened.close()
    if not plain:
        await closed
