"""Cases in which replicas die and endpoints are dead."""

from __future__ import annotations

import asyncio
import socket

import gesmas

from support import World, case, equal, fails, soon, start, until

CALLS = 60


def dead_endpoint() -> tuple[str, socket.socket]:
    """An address that nobody listens on, as long as the socket is kept."""
    kept = socket.socket()
    kept.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{kept.getsockname()[1]}", kept


@case
async def blocked_call_survives_its_replica(world: World) -> None:
    queue, client = await world.queue(), world.other_client()
    taken = start(client.call(queue, "consume"))
    await world.blocked(queue, 1)
    await world.line.ask("kill", endpoint=client.endpoint)
    await world.client.call(queue, "produce", item=b"one")
    await world.client.call(queue, "produce", item=b"two")
    equal(await soon(taken), b"one")
    await world.line.ask("restart")
    equal(await world.client.call(queue, "length"), 1)


@case
async def silent_replica_is_passed_over(world: World) -> None:
    counter, client = world.object("Counter"), world.other_client()
    equal(await client.call(counter, "get"), 0)
    frozen = client.endpoint
    await world.line.ask("freeze", endpoint=frozen)
    equal(await client.call(counter, "increment"), 1)
    assert client.endpoint != frozen
    await world.line.ask("thaw", endpoint=frozen)
    equal(await world.other_client(frozen).call(counter, "increment"), 2)


@case
async def lost_call_without_a_key_is_unknown(world: World) -> None:
    queue, client = await world.queue(), world.other_client()
    taken = start(client.options(idempotent=False).call(queue, "consume"))
    await world.blocked(queue, 1)
    await world.line.ask("kill", endpoint=client.endpoint)
    error = await fails(gesmas.Unknown, taken)
    equal(error.code, "unknown")
    await world.line.ask("restart")


@case
async def exactly_once_under_a_killed_leader(world: World) -> None:
    counter = world.object("Counter")
    acknowledged: list[int] = []
    half = asyncio.Event()

    async def count(client: object) -> None:
        for _ in range(CALLS):
            acknowledged.append(await client.call(counter, "increment"))  # type: ignore[attr-defined]
            if len(acknowledged) == 4 * CALLS:
                half.set()

    clients = [world.other_client(timeout=60) for _ in range(4)]
    tasks = [start(count(client)) for client in clients for _ in range(2)]
    await asyncio.wait_for(half.wait(), 60)
    await world.line.ask("kill-leader")
    await asyncio.gather(*tasks)
    # Each was counted, and each count was given to one caller.
    equal(sorted(acknowledged), list(range(1, 8 * CALLS + 1)))
    equal(await world.client.call(counter, "get"), 8 * CALLS)
    await world.line.ask("restart")


@case
async def outcomes_are_forgotten(world: World) -> None:
    counter = world.object("Counter")
    before = await world.line.ask("sessions")
    for _ in range(100):
        await world.client.call(counter, "increment")

    async def is_few() -> bool:
        # The next call has those before it forgotten.
        await world.client.call(counter, "increment")
        return await world.line.ask("sessions") <= before + 20

    await until("that few outcomes are kept", is_few)


@case
async def unreachable(world: World) -> None:
    dead, kept = dead_endpoint()
    client = world.other_client(dead, timeout=0.5)
    await fails(gesmas.Unreachable, client.call("Counter/x", "increment"))
    kept.close()


@case
async def failover(world: World) -> None:
    dead, kept = dead_endpoint()
    counter = world.object("Counter")
    # Wherever they begin, each gets there, with and without keys, and for reads.
    for turn in range(6):
        client = world.other_client(dead, world.face.endpoints[turn % 3])
        await client.options(idempotent=turn % 2 == 0).call(counter, "increment")
        equal(await client.call(counter, "get"), turn + 1)
    kept.close()
