"""Cases of what is held: given up in every way, at every moment, for everything that can be held.

Races are drawn, many of them, from a seed that is printed; one that went wrong is found at the end, as something that
is held and that nobody has.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import gesmas
import gesmas.aio
from gesmas._types import parse_duration

from support import PATIENCE, World, case, equal, soon, start, until

ROUNDS = 15
"""Races for each kind. In threads nothing can be cancelled but by closing a client, which takes a client each."""
ROUNDS_PLAIN = 4


@dataclass(frozen=True)
class Kind:
    """Something that can be held: how it is taken, and what tells that it is free."""

    name: str
    class_name: str
    take: Callable[[Any, Any], Awaitable[Any]]
    is_free: Callable[[Any, str], Awaitable[bool]]
    rival: Callable[[Any, Any], Awaitable[Any]] | None = None
    blocks: bool = True


def _taking(method: str, *arguments: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    return lambda handle, timeout: getattr(handle, method)(*arguments, timeout=timeout)


async def _nobody(client: Any, target: str, method: str, **arguments: Any) -> bool:
    try:
        found = await client.call(target, method, **arguments)
    except gesmas.ObjectUnknown:
        return True
    if isinstance(found, dict):
        found = found.get("holders", found.get("members", found))
    return not found


KINDS = [
    Kind("lock", "Lock", _taking("acquire"), lambda c, t: _nobody(c, t, "holder")),
    Kind(
        "reader", "RwLock", _taking("read"),
        lambda c, t: _nobody(c, t, "holders", after=0, limit=10), rival=_taking("write"),
    ),
    Kind("writer", "RwLock", _taking("write"), lambda c, t: _nobody(c, t, "holders", after=0, limit=10)),
    Kind("permits", "Semaphore", _taking("acquire", 2), lambda c, t: _all_free(c, t)),
    Kind("leader", "Election", _taking("campaign", b"me"), lambda c, t: _nobody(c, t, "leader")),
    Kind("lease", "Lease", _taking("acquire", b"me", 600.0), lambda c, t: _nobody(c, t, "holder")),
    Kind(
        "member", "Membership", lambda handle, _: handle.join("me"),
        lambda c, t: _nobody(c, t, "members", after="", limit=10), blocks=False,
    ),
]  # fmt: skip
BLOCKING = [kind for kind in KINDS if kind.blocks]


async def _all_free(client: Any, target: str) -> bool:
    return await client.call(target, "available") == 2


async def target_of(world: World, kind: Kind, number: int = 0) -> str:
    target = f"{world.object(kind.class_name)}-{kind.name}-{number}"
    if kind.class_name == "Semaphore":
        await world.client.create(target, permits=2)
    return target


def handle_of(world: World, kind: Kind, caller: Any, target: str) -> Any:
    return world.face.handle(kind.class_name, caller, target.partition("/")[2])


async def free(world: World, kind: Kind, target: str, why: str) -> None:
    await until(f"that nobody holds {target} ({why})", lambda: kind.is_free(world.client, target))


class Party:
    """A caller that takes something, and can be made to give it up: by cancelling its task, or by closing its client."""

    def __init__(self, world: World, session: Any, client: Any) -> None:
        self.world, self.session, self.client = world, session, client

    @classmethod
    async def of(cls, world: World, timeout: float = 120.0) -> Party:
        client = world.other_client()
        return cls(world, await client.session(timeout=timeout), client)

    async def give_up(self, task: asyncio.Task[Any]) -> Any:
        """What the task has in the end; none if it was given up."""
        if self.world.face.plain:
            await self.client.close()
        else:
            task.cancel()
        try:
            return await task
        except (asyncio.CancelledError, gesmas.Closed):
            return None


class Parties:
    """The parties of many rounds: one where tasks are cancelled, where clients are closed one for each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._all: list[Party] = []
        self.rounds = ROUNDS_PLAIN if world.face.plain else ROUNDS

    async def next(self) -> Party:
        if self._world.face.plain or not self._all:
            self._all.append(await Party.of(self._world))
        return self._all[-1]

    async def leave(self) -> None:
        """Waits for what was withdrawn; their sessions live on in the cluster, with all that they hold."""
        for party in self._all:
            await party.client.close()


def drawn(world: World) -> random.Random:
    seed = random.randrange(1 << 32)
    world.line.note(f"{world.name}: seed {seed}")
    return random.Random(seed)


async def after_a_while(seconds: float) -> None:
    """A moment of a race: no result depends on how long it is."""
    await asyncio.sleep(seconds)


@case
async def given_up_while_waiting(world: World) -> None:
    async with world.session() as rival:
        for kind in BLOCKING:
            target, party = await target_of(world, kind), await Party.of(world)
            held = await (kind.rival or kind.take)(handle_of(world, kind, rival, target), None)
            waits = start(kind.take(handle_of(world, kind, party.session, target), None))
            await world.blocked(target, 1)
            equal(await party.give_up(waits), None)
            await world.blocked(target, 0)
            await held.release()
            await free(world, kind, target, "a wait was given up")


@case
async def given_up_at_the_grant(world: World) -> None:
    draw, parties, played = drawn(world), Parties(world), []
    async with world.session() as rival:
        for kind in BLOCKING:
            for number in range(parties.rounds):
                target, party = await target_of(world, kind, number), await parties.next()
                played.append((kind, target))
                held = await (kind.rival or kind.take)(handle_of(world, kind, rival, target), None)
                waits = start(kind.take(handle_of(world, kind, party.session, target), None))
                await world.blocked(target, 1)
                gives = start(held.release())
                await after_a_while(draw.random() * 0.008)
                taken = await party.give_up(waits)
                await soon(gives)
                if taken is not None:
                    await _release(taken)
        await parties.leave()
        for kind, target in played:
            await free(world, kind, target, "a wait was given up at the grant")
        if world.face.plain:
            await _interrupted(world, rival, draw)


INTERRUPTED = """
import signal, sys, gesmas
armed = False
def interrupt(number, frame):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
session = gesmas.Client(*sys.argv[1].split(",")).session(timeout=120)
for name in sys.stdin:
    try:
        armed = True
        with session.lock(name.strip()):
            pass
        armed = False
    except KeyboardInterrupt:
        pass
    print("through", flush=True)
"""


async def _interrupted(world: World, rival: Any, draw: random.Random) -> None:
    """Ctrl-C, wherever it comes, in a program that goes on: its session lives, with all that it holds."""
    endpoints = ",".join(world.face.endpoints)
    arguments = (sys.executable, "-W", "ignore", "-c", INTERRUPTED, endpoints)
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe)
    assert program.stdin is not None and program.stdout is not None
    names = [f"{world.name}-interrupted-{number}" for number in range(ROUNDS)]
    for name in names:
        held = await rival.lock(name).acquire()
        program.stdin.write(f"{name}\n".encode())
        await world.blocked(f"Lock/{name}", 1)
        gives = start(held.release())
        await after_a_while(draw.random() * 0.006)
        program.send_signal(signal.SIGINT)
        equal(await soon(start(program.stdout.readline())), b"through\n")
        await soon(gives)
    for name in names:
        await free(world, KINDS[0], f"Lock/{name}", "the program was interrupted")
    program.kill()
    await program.wait()


@case
async def given_up_on_arrival(world: World) -> None:
    """Nobody is in the way: it is granted at once, while its caller gives it up."""
    draw, parties, played = drawn(world), Parties(world), []
    for kind in KINDS:
        for number in range(parties.rounds):
            target, party = await target_of(world, kind, number), await parties.next()
            played.append((kind, target))
            takes = start(kind.take(handle_of(world, kind, party.session, target), None))
            await after_a_while(draw.random() * 0.01)
            taken = await party.give_up(takes)
            if taken is not None:
                await _release(taken)
    await parties.leave()
    for kind, target in played:
        await free(world, kind, target, "an acquisition was given up on arrival")


@case
async def given_up_at_release(world: World) -> None:
    draw, parties, played = drawn(world), Parties(world), []
    for kind in KINDS:
        for number in range(parties.rounds):
            target, party = await target_of(world, kind, number), await parties.next()
            played.append((kind, target))
            held = await kind.take(handle_of(world, kind, party.session, target), None)
            inside = asyncio.Event()

            async def within(held: Any = held, inside: asyncio.Event = inside) -> None:
                async with held:
                    inside.set()

            leaves = start(within())
            await inside.wait()
            await after_a_while(draw.random() * 0.005)
            await party.give_up(leaves)
    await parties.leave()
    for kind, target in played:
        await free(world, kind, target, "a release was given up")


@case
async def given_up_without_a_cluster(world: World) -> None:
    """While no replica runs, a wait and a release are given up: both are seen through once the cluster is back."""
    held_name, waited_name = world.name + "-held", world.name + "-waited"
    async with world.session(timeout=8) as rival:
        # A client that is closed does not try for ever: its session, which it no longer keeps alive, ends.
        timeout = 10.0 if world.face.plain else 120.0
        party, other = await Party.of(world, timeout), await Party.of(world, timeout)
        held = await party.session.lock(held_name).acquire()
        theirs = await rival.lock(waited_name).acquire()
        waits = start(other.session.lock(waited_name).acquire())
        await world.blocked(f"Lock/{waited_name}", 1)
        for endpoint in world.face.endpoints:
            await world.line.ask("kill", endpoint=endpoint)
        leaves = start(held.release())
        await after_a_while(0.2)
        gave_up = [start(party.give_up(leaves)), start(other.give_up(waits))]
        if not world.face.plain:
            # A thread goes on until it has an answer; a task that was cancelled does not wait.
            equal([await soon(one) for one in gave_up], [None, None])
        # Longer than one attempt at a withdrawal lasts.
        equal(await rival.wait_lost(PATIENCE), True)
        await world.line.ask("restart")
        equal([await soon(one) for one in gave_up], [None, None])
        await free(world, KINDS[0], f"Lock/{held_name}", "its release was given up")
        await world.blocked(f"Lock/{waited_name}", 0)
        await theirs.release()
        await free(world, KINDS[0], f"Lock/{waited_name}", "a wait for it was given up")


@case
async def given_up_by_timeout(world: World) -> None:
    """The time is up at about the moment of the grant: by the handle's own limit, and by that of a task."""
    draw, played = drawn(world), []
    ways = ("own",) if world.face.plain else ("own", "task")
    async with world.session() as rival, world.session() as ours:
        for kind in BLOCKING:
            for number in range(ROUNDS):
                target, way = await target_of(world, kind, number), ways[number % len(ways)]
                played.append((kind, target))
                held = await (kind.rival or kind.take)(handle_of(world, kind, rival, target), None)
                limit = 0.02 + draw.random() * 0.02
                takes = kind.take(handle_of(world, kind, ours, target), limit if way == "own" else None)
                waits = start(takes if way == "own" else asyncio.wait_for(takes, limit))
                await after_a_while(0.015 + draw.random() * 0.03)
                await held.release()
                try:
                    taken = await soon(waits)
                except asyncio.TimeoutError:
                    taken = None
                if taken is not None:
                    await _release(taken)
        for kind, target in played:
            await free(world, kind, target, "the time was up")


async def _release(held: Any) -> None:
    try:
        await held.release()
    except gesmas.Closed:
        # Its client was closed when it had it: that is given back aside.
        pass


@case
async def guard_gives_back(world: World) -> None:
    async with world.session() as session:
        for kind in KINDS:
            target = await target_of(world, kind)
            held = await kind.take(handle_of(world, kind, session, target), None)
            equal((await kind.is_free(world.client, target), held.is_lost), (False, False))
            held.check()
            await held.release()
            await held.release()
            equal((await kind.is_free(world.client, target), held.is_lost), (True, True))
            try:
                held.check()
                raise AssertionError("it is held")
            except gesmas.NotHeld:
                pass
            # One that nobody has any more is given back too.
            await kind.take(handle_of(world, kind, session, target), None)
            held = None
            await free(world, kind, target, "its guard was dropped")


@case
async def fate_is_told(world: World) -> None:
    queue, draw = await world.queue(), drawn(world)
    for _ in range(Parties(world).rounds):
        doomed = world.other_client()
        call = start(doomed.options(timeout=120).call(queue, "consume"))
        await world.blocked(queue, 1)
        serves = start(world.client.call(queue, "produce", item=b"served"))
        await after_a_while(draw.random() * 0.008)
        if world.face.plain:
            await doomed.close()
        else:
            call.cancel()
        try:
            taken = await call == b"served"
        except (asyncio.CancelledError, gesmas.Closed) as error:
            fate = await world.face.fate_of(error)
            assert fate is not None and fate.ending in (gesmas.Ending.RETURNED, gesmas.Ending.WITHDRAWN)
            taken = fate.result == b"served"
        await soon(serves)
        # What is told is so: the item was taken, or it is still there.
        equal(await world.client.call(queue, "length"), 0 if taken else 1)
        if not taken:
            await world.client.call(queue, "consume")
    equal(await world.face.fate_of(gesmas.Unreachable("unreachable", "")), None)


@case
async def wait_without_a_limit(world: World) -> None:
    async with world.session() as rival, world.session() as ours:
        for kind in BLOCKING:
            target = await target_of(world, kind)
            held = await (kind.rival or kind.take)(handle_of(world, kind, rival, target), None)
            waits = start(kind.take(handle_of(world, kind, ours, target), None))
            await world.blocked(target, 1)
            (blocked,) = await world.client.blocked(target)
            equal(blocked["deadline"], None)
            await held.release()
            await (await soon(waits)).release()


@case
async def session_given_up(world: World) -> None:
    """Opened and closed by callers that give up: it is open at the end only if its caller has it."""
    draw = drawn(world)
    timeout = 3_000.0 + world.face.plain
    for _ in range(4 * ROUNDS):
        client = world.other_client()
        opens = start(client.session(timeout=timeout))
        await after_a_while(draw.random() * 0.003)
        party = Party(world, None, client)
        session = await party.give_up(opens)
        if session is not None:
            closes = start(session.close())
            # Once at least: a task that is cancelled before its first turn never begins.
            for _ in range(1 + draw.randrange(6)):
                await asyncio.sleep(0)
            await party.give_up(closes)
        await client.close()

    def open_sessions() -> int:
        with urllib.request.urlopen(f"{world.face.endpoints[0]}/v1/sessions?limit=1000") as answer:
            rows = json.load(answer)["sessions"]
        return sum(parse_duration(row["timeout"]) == timeout * 1_000_000_000 for row in rows)

    async def none_is_open() -> bool:
        return await asyncio.to_thread(open_sessions) == 0

    await until("that no session is open that nobody has", none_is_open)
