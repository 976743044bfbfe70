"""Cases of the handles of standard classes, and of the README."""

from __future__ import annotations

import asyncio
import pathlib
import re
import textwrap

import gesmas
import gesmas.aio

from support import World, case, equal, soon, start

README = pathlib.Path(gesmas.__file__).parents[2] / "README.md"


@case
async def queue_across_languages(world: World) -> None:
    queue = await world.queue()
    taken = start(world.client.call(queue, "consume"))
    await world.blocked(queue, 1)
    item = "für dich"
    await world.line.ask("peer", target=queue, method="produce", arguments={"item": item})
    equal(await soon(taken), item.encode())
    theirs = start(world.line.ask("peer", target=queue, method="consume", arguments={}))
    await world.blocked(queue, 1)
    await world.client.call(queue, "produce", item=b"\xff\x00")
    equal(await soon(theirs), "ff00")


@case
async def queue(world: World) -> None:
    queue = world.handle("Queue", world.client)
    await queue.create(2)
    equal(await queue.put(b"1"), True)
    equal(await queue.put("2", timeout=5), True)
    equal(await queue.put(b"3", timeout=0.05), False)
    equal(await queue.length(), 2)
    equal([await queue.get(), await queue.get(timeout=5)], [b"1", b"2"])
    equal(await queue.get(timeout=0.05), None)
    equal(await queue.get_nowait(), None)


@case
async def barrier(world: World) -> None:
    barrier = world.handle("Barrier", world.client)
    await barrier.create(3)
    equal(await barrier.wait(timeout=0.05), None)
    for generation in range(2):
        parties = [start(barrier.wait()) for _ in range(2)]
        await world.blocked(barrier.target, 2)
        equal(await barrier.wait(timeout=30), generation)
        equal([await soon(party) for party in parties], [generation] * 2)


@case
async def semaphore(world: World) -> None:
    async with world.session() as session, world.session() as other:
        ours, theirs = world.handle("Semaphore", session), world.handle("Semaphore", other)
        await ours.create(3)
        grant = await ours.acquire(2)
        equal(await ours.available(), 1)
        equal(await theirs.acquire(2, timeout=0.05), None)
        waits = start(theirs.acquire(2))
        await world.blocked(ours.target, 1)
        await ours.release(grant)
        assert (await soon(waits)).token > grant.token
        error = await _error(ours.acquire(4))
        equal((error.variant, error.fields), ("TooMany", gesmas.Record(total=3)))


async def _error(work: object) -> gesmas.ClassError:
    try:
        await work  # type: ignore[misc]
    except gesmas.ClassError as error:
        return error
    raise AssertionError("there is a result")


@case
async def election(world: World) -> None:
    async with world.session() as session, world.session() as other:
        ours, theirs = world.handle("Election", session), world.handle("Election", other)
        lead = await ours.campaign(b"first")
        waits = start(theirs.campaign("second"))
        await world.blocked(ours.target, 1)
        leader = await theirs.leader()
        equal((leader.candidate, leader.token), (b"first", lead.token))
        await ours.resign(lead)
        assert (await soon(waits)).token > lead.token
        equal((await ours.leader()).candidate, b"second")


@case
async def another_session_gives_nothing_back(world: World) -> None:
    async with world.session() as session, world.session() as other:
        lock, members = world.object("Lock"), world.object("Membership")
        token = await session.call(lock, "lock", owner=1)
        equal((await other.call(lock, "holder")).token, token)
        equal((await _error(other.call(lock, "unlock", token=token))).variant, "NotHolder")
        await session.call(lock, "unlock", token=token)
        token = await session.call(members, "join", name="a", metadata=b"")
        equal(await session.call(members, "join", name="a", metadata=b"again"), token)
        equal((await _error(other.call(members, "join", name="a", metadata=b""))).variant, "NameTaken")
        left = other.call(members, "leave", name="a", token=token)
        equal((await _error(left)).variant, "NotHolder")


@case
async def retry_of_an_owner(world: World) -> None:
    async with world.session() as session, world.session() as other:
        lock = world.object("Lock")
        held = await session.call(lock, "lock", owner=1)
        waits = [start(other.call(lock, "lock", owner=7)) for _ in range(2)]
        await world.blocked(lock, 2)
        await session.call(lock, "unlock", token=held)
        first, second = [await soon(call) for call in waits]
        equal(first, second)
        assert first > held


@case
async def readme(world: World) -> None:
    examples = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    chosen = [text for text in examples if ("gesmas.aio" in text) is not world.face.plain]
    assert chosen, "the README has an example of each face"
    for text in chosen:
        for port, address in enumerate(world.face.endpoints, 7180):
            text = text.replace(f"http://127.0.0.1:{port}", address)
        if world.face.plain:
            await asyncio.to_thread(exec, text, {})
        else:
            names: dict[str, object] = {"gesmas": gesmas}
            exec(f"async def example():\n{textwrap.indent(text, '    ')}", names)
            await names["example"]()  # type: ignore[operator]
