"""Cases of sessions, locks and events."""

from __future__ import annotations

import asyncio

import gesmas
from gesmas import Event, Gap, SessionState

from support import PATIENCE, World, case, equal, fails, soon, start, until

SHORT = 5.0
"""The shortest timeout of a session."""


@case
async def no_session(world: World) -> None:
    error = await fails(gesmas.ClassError, world.client.call(world.object("Lock"), "lock", owner=1))
    equal(error.variant, "NoSession")


@case
async def session_over(world: World) -> None:
    session = await world.client.session()
    await session.call(world.object("Lock"), "lock", owner=1)
    await session.close()
    assert session.is_lost and session.state is SessionState.OVER
    await fails(gesmas.SessionOver, session.call(world.object("Lock"), "lock", owner=1))
    await session.close()


@case
async def session_lost_is_told(world: World) -> None:
    session = await world.client.session(timeout=SHORT)
    equal((session.timeout, session.is_lost), (SHORT, False))
    equal(await session.wait_lost(0.01), False)
    lost = start(session.wait_lost(PATIENCE))
    await world.line.ask("end-session", session=session.id)
    # Found out by the keep-alive from aside, long before the timeout could have passed unheard.
    equal(await soon(lost), True)
    equal(session.state, SessionState.OVER)
    await fails(gesmas.SessionOver, session.keep_alive())


@case
async def session_doubted(world: World) -> None:
    session = await world.client.session(timeout=SHORT)
    async with session.lock(world.object("Lock").partition("/")[2]) as held:
        await session.keep_alive()
        await world.line.ask("kill-majority")
        equal(await held.wait_lost(PATIENCE), True)
        equal((held.is_lost, session.state), (True, SessionState.DOUBTFUL))
        await world.line.ask("restart")
        await until("that the session is safe again", lambda: _is_open(session))
        # It was never over: the lock is still this session's.
        equal((await world.client.call(world.object("Lock"), "holder")).token, held.token)
    await session.close()


async def _is_open(session: object) -> bool:
    await asyncio.sleep(0)
    return session.state is SessionState.OPEN  # type: ignore[attr-defined]


@case
async def session_survives_its_replica(world: World) -> None:
    client = world.other_client()
    async with world.session(client) as session, session.lock("survives") as held:
        await world.line.ask("kill", endpoint=client.endpoint)
        equal((await session.call("Lock/survives", "holder")).token, held.token)
        await session.keep_alive()
        equal(session.state, SessionState.OPEN)
    await world.line.ask("restart")


@case
async def lock_excludes(world: World) -> None:
    name = world.object("Lock").partition("/")[2]
    async with world.session() as first, world.session() as second:
        ours, theirs = first.lock(name), second.lock(name)
        held = await ours.acquire()
        equal(await theirs.acquire(timeout=0), None)
        waits = start(theirs.acquire())
        await world.blocked(f"Lock/{name}", 1)
        equal((await ours.holder()).session, int(first.id))
        await ours.release(held)
        taken = await soon(waits)
        assert taken.token > held.token
        # A guard gives back once; what is given back once more by hand is not held.
        await ours.release(held)
        error = await fails(gesmas.ClassError, first.call(f"Lock/{name}", "unlock", token=held.token))
        equal(error.variant, "NotHeld")
        equal((await ours.holder()).token, taken.token)
        await theirs.release(taken)


@case
async def lock_released_by_closing(world: World) -> None:
    name = world.object("Lock").partition("/")[2]
    first = await world.client.session()
    held = await first.lock(name).acquire()
    async with world.session() as second:
        waits = start(second.lock(name).acquire())
        await world.blocked(f"Lock/{name}", 1)
        await first.close()
        assert (await soon(waits)).token > held.token


@case
async def lock_released_by_expiry(world: World) -> None:
    name, gone = world.object("Lock").partition("/")[2], world.other_client()
    first = await gone.session(timeout=SHORT)
    held = await first.lock(name).acquire()
    async with world.session() as second:
        waits = start(second.lock(name).acquire())
        await world.blocked(f"Lock/{name}", 1)
        # Without closing the session, as when a program dies.
        await gone.close()
        assert (await soon(waits)).token > held.token


@case
async def lock_tells_owners_apart(world: World) -> None:
    name = world.object("Lock").partition("/")[2]
    async with world.session() as session:
        one, other = session.lock(name), session.lock(name)
        held, again = await one.acquire(), await one.acquire()
        equal(again.token, held.token)
        waits = start(other.acquire())
        await world.blocked(f"Lock/{name}", 1)
        await held.release()
        await held.release()
        await world.blocked(f"Lock/{name}", 1)
        await again.release()
        assert (await soon(waits)).token > held.token


@case
async def lock_context(world: World) -> None:
    name = world.object("Lock").partition("/")[2]
    async with world.session() as session:
        lock = session.lock(name)
        try:
            async with lock as held:
                equal((await lock.holder()).token, held.token)
                assert not held.is_lost
                held.check()
                raise RuntimeError("within")
        except RuntimeError as error:
            equal(str(error), "within")
        equal(await lock.holder(), None)


@case
async def lock_waits_for_a_while(world: World) -> None:
    name = world.object("Lock").partition("/")[2]
    async with world.session() as first, world.session() as second:
        held = await first.lock(name).acquire()
        equal(await second.lock(name).acquire(timeout=0.2), None)
        await world.blocked(f"Lock/{name}", 0)
        await held.release()
        assert await second.lock(name).acquire(timeout=PATIENCE) is not None


async def numbers(events: object, count: int) -> list[int]:
    """The numbers of the next events, whose payloads are their numbers too."""
    found = []
    while len(found) < count:
        event = await asyncio.wait_for(events.__anext__(), PATIENCE)  # type: ignore[attr-defined]
        equal(event, Event(event.number, str(event.number).encode()))
        found.append(event.number)
    return found


@case
async def events_in_order(world: World) -> None:
    echo = await world.echo()
    async with world.session() as session:
        events = session.events()
        first = start(numbers(events, 30))
        for start_at in (1, 11, 21):
            await session.call(echo, "emit", **{"from": start_at, "count": 10})
        equal(await soon(first), list(range(1, 31)))


@case
async def events_after_a_reconnection(world: World) -> None:
    echo = await world.echo()
    async with world.session() as session:
        events = session.events()
        await session.call(echo, "emit", **{"from": 1, "count": 10})
        equal(await numbers(events, 4), [1, 2, 3, 4])
        events.reconnect()
        await session.call(echo, "emit", **{"from": 11, "count": 10})
        equal(await numbers(events, 10), list(range(5, 15)))
        waits = start(numbers(events, 7))
        events.reconnect()
        await session.call(echo, "emit", **{"from": 21, "count": 1})
        equal(await soon(waits), list(range(15, 22)))


@case
async def events_acknowledged(world: World) -> None:
    echo = await world.echo()
    async with world.session() as session:
        await session.call(echo, "emit", **{"from": 1, "count": 10})
        first = session.events()
        equal(await numbers(first, 6), [1, 2, 3, 4, 5, 6])
        first.close()
        # The sixth was given and not acknowledged: nobody has asked for the seventh.
        second = session.events()
        equal(await numbers(second, 1), [6])
        session.acknowledge(8)
        await session.keep_alive()
        second.close()
        equal(await numbers(session.events(), 2), [9, 10])


@case
async def events_gap(world: World) -> None:
    echo = await world.echo()
    async with world.session() as session:
        for start_at in range(1, 1_101, 100):
            await session.call(echo, "emit", **{"from": start_at, "count": 100})
        events = session.events()
        equal(await asyncio.wait_for(events.__anext__(), PATIENCE), Gap(1, 100))
        equal(await numbers(events, 1_000), list(range(101, 1_101)))


@case
async def events_survive_a_replica(world: World) -> None:
    echo, client = await world.echo(), world.other_client()
    async with world.session(client) as session:
        events = session.events()
        await session.call(echo, "emit", **{"from": 1, "count": 3})
        equal(await numbers(events, 3), [1, 2, 3])
        waits = start(numbers(events, 2))
        await world.line.ask("kill", endpoint=client.endpoint)
        await session.call(echo, "emit", **{"from": 4, "count": 2})
        equal(await soon(waits), [4, 5])
    await world.line.ask("restart")


@case
async def events_end_with_the_session(world: World) -> None:
    echo = await world.echo()
    session = await world.client.session()
    first = session.events()
    await session.call(echo, "emit", **{"from": 1, "count": 1})
    equal(await numbers(first, 1), [1])
    # The stream of another reader takes over; the first takes it back when it notices, and neither ends.
    second = session.events()
    equal(await numbers(second, 1), [1])
    await session.call(echo, "emit", **{"from": 2, "count": 1})
    equal(await numbers(second, 1), [2])
    equal(session.state, SessionState.OPEN)
    second.close()
    ends = start(_rest(first))
    await world.line.ask("end-session", session=session.id)
    await soon(ends)
    equal(session.state, SessionState.OVER)


async def _rest(events: object) -> None:
    async for _ in events:  # type: ignore[attr-defined]
        pass
