"""Cases of values, errors, objects, and what ends a call."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone

import gesmas
from gesmas import Duration, Record, Some, Time, Variant

from support import World, case, equal, fails, soon, start

ENDLESS = 600.0
"""Longer than any case waits: a call that is gone earlier was cancelled."""


@case
async def values_numbers(world: World) -> None:
    echo = await world.echo()
    widths = dict(zip("abcde", (8, 16, 32, 64, 128)))
    least = {name: 0 for name in widths} | {
        name: -(1 << width - 1) for name, width in zip("fghij", widths.values())
    }
    greatest = {name: (1 << width) - 1 for name, width in widths.items()} | {
        name: (1 << width - 1) - 1 for name, width in zip("fghij", widths.values())
    }
    for value in (least, greatest):
        found = await world.client.call(echo, "numbers", value=value)
        equal(dict(found), value)
        assert all(type(number) is int for number in found.values()), found
        equal(found.d, value["d"])


@case
async def values_plain(world: World) -> None:
    echo = await world.echo()
    value = Record(
        flag=True,
        text='"ö\u2028\U0001f600\n',
        bytes=bytes(range(256)),
        four=b"text",
        duration=Duration((1 << 64) - 1),
        time=Time((1 << 64) - 1),
        nothing=None,
    )
    found = await world.client.call(echo, "plain", value=value)
    equal(found, value)
    equal(found.duration.nanoseconds, (1 << 64) - 1)
    equal(found.time.nanoseconds, (1 << 64) - 1)
    # Python's own types go in, and what comes out equals them.
    at = datetime(2026, 11, 27, 10, 0, 0, 250_000, timezone(timedelta(hours=2)))
    again = {**value, "duration": timedelta(milliseconds=1500), "time": at, "text": ""}
    found = await world.client.call(echo, "plain", value=again)
    assert found["duration"] == timedelta(milliseconds=1500) and found["time"] == at, found


@case
async def values_nested(world: World) -> None:
    echo = await world.echo()
    value = Record(
        option=5,
        deep=Some(None),
        list=[b"", b"\xff", b"text"],
        set={"a", "b", "ö"},
        numbers={1, 10, (1 << 64) - 1},
        tuple=(255, "text"),
        by_text={"": 0, "k": (1 << 64) - 1},
        by_number={(1 << 64) - 1: "last", 2: "two"},
        by_bytes={b"\xff": 1, b"k": 2},
        by_pair={(1, True): Time(1), (1, False): Time(0)},
    )
    equal(await world.client.call(echo, "nested", value=value), value)
    nothing = Record(value, option=None, deep=None, list=[], set=set(), by_text={})
    equal(await world.client.call(echo, "nested", value=nothing), nothing)
    equal((await world.client.call(echo, "nested", value={**value, "deep": Some(3)})).deep, Some(3))


@case
async def values_shapes(world: World) -> None:
    echo = await world.echo()
    wide = (1 << 64) - 1
    shapes = [
        "Dot",
        Variant("Circle", wide),
        Variant("Line", ((1, "a"), (2, "b"))),
        Variant("Box", Record(width=wide, height=None)),
        Variant("Box", Record(width=0, height=wide)),
    ]
    equal(await world.client.call(echo, "shapes", value=shapes), shapes)


@case
async def option_left_out(world: World) -> None:
    echo = await world.echo()
    equal(await world.client.call(echo, "maybe"), None)
    equal(await world.client.call(echo, "maybe", number=None), None)
    equal(await world.client.call(echo, "maybe", number=1 << 63), 1 << 63)


@case
async def class_error(world: World) -> None:
    echo = await world.echo()
    error = await fails(gesmas.ClassError, world.client.call(echo, "fail", mark=8))
    equal((error.variant, error.error, error.fields, error.aborted), ("Asked", "Asked", None, False))
    equal((error.code, error.status), ("failed", 422))
    assert "fail of Echo/" in error.detail, error.detail
    equal(await world.client.call(echo, "mark"), 8)


@case
async def class_error_with_fields(world: World) -> None:
    echo = await world.echo()
    told = Record(number=(1 << 64) - 1, bytes=b"\xff\x00")
    error = await fails(gesmas.ClassError, world.client.call(echo, "tell", **told))
    equal(error.variant, "Told")
    equal(error.fields, told)


@case
async def class_error_aborted(world: World) -> None:
    echo = await world.echo()
    error = await fails(gesmas.ClassError, world.client.call(echo, "abort", mark=8))
    equal((error.variant, error.aborted), ("Asked", True))
    equal(await world.client.call(echo, "mark"), 7)


@case
async def trap_has_an_id(world: World) -> None:
    echo = await world.echo()
    error = await fails(gesmas.Trapped, world.client.call(echo, "panic", mark=8))
    assert error.id is not None and len(error.id) == 16 and "on purpose" in error.detail, vars(error)
    equal(await world.client.call(echo, "mark"), 7)


@case
async def argument_named(world: World) -> None:
    queue = await world.queue()
    for item in (3, object(), datetime(2026, 11, 27)):
        error = await fails(gesmas.ArgumentError, world.client.call(queue, "produce", item=item))
        assert "`item`" in error.detail, error.detail
    error = await fails(gesmas.ArgumentError, world.client.call(queue, "produce", thing=1))
    assert '"thing"' in error.detail, error.detail
    equal(await world.client.call(queue, "length"), 0)


@case
async def argument_missing(world: World) -> None:
    queue = await world.queue()
    error = await fails(gesmas.ArgumentError, world.client.call(queue, "produce"))
    assert '"item"' in error.detail, error.detail


@case
async def unknown_names(world: World) -> None:
    call = world.client.call
    error = await fails(gesmas.ClassUnknown, call("Nothing/x", "run"))
    assert error.advice is not None
    await fails(gesmas.MethodUnknown, call(await world.queue(), "fetch"))
    await fails(gesmas.ObjectUnknown, call("Queue/never-created", "consume"))
    await fails(gesmas.ArgumentError, call("Queue", "consume"))
    await fails(gesmas.ArgumentError, call("Queue/" + "x" * 5_000, "consume"))


@case
async def object_created(world: World) -> None:
    queue = await world.queue(capacity=3)
    await world.client.create(queue, capacity=3)
    await fails(gesmas.ObjectExists, world.client.create(queue, capacity=4))
    await fails(gesmas.ArgumentError, world.client.create(queue))


@case
async def object_removed(world: World) -> None:
    queue = await world.queue()
    taken = start(world.client.call(queue, "consume"))
    await world.blocked(queue, 1)
    await world.client.remove(queue)
    await fails(gesmas.ObjectRemoved, taken)
    await world.client.remove(queue)
    await fails(gesmas.ObjectUnknown, world.client.call(queue, "length"))


@case
async def deadline_cancels(world: World) -> None:
    queue = await world.queue()
    for keyed in (True, False):
        brief = world.client.options(timeout=0.3, idempotent=keyed)
        error = await fails(gesmas.DeadlineExceeded, brief.call(queue, "consume"))
        equal(error.code, "cancelled")
        await world.blocked(queue, 0)


@case
async def hang_up_cancels(world: World) -> None:
    queue, doomed = await world.queue(), world.other_client()
    taken = start(doomed.options(idempotent=False, timeout=ENDLESS).call(queue, "consume"))
    await world.blocked(queue, 1)
    if world.face.plain:
        await doomed.close()
        await fails(gesmas.Unknown, taken)
    else:
        await world.face.give_up(taken, doomed)
    await world.blocked(queue, 0)
    await world.client.call(queue, "produce", item=b"kept")
    equal(await world.client.call(queue, "length"), 1)


@case
async def giving_up_cancels(world: World) -> None:
    queue, doomed = await world.queue(), world.other_client()
    taken = start(doomed.options(timeout=ENDLESS).call(queue, "consume"))
    await world.blocked(queue, 1)
    await world.face.give_up(taken, doomed)
    await world.blocked(queue, 0)
    await world.client.call(queue, "produce", item=b"kept")
    equal(await world.client.call(queue, "length"), 1)


@case
async def closing_cancels(world: World) -> None:
    queue, doomed = await world.queue(), world.other_client()
    taken = [start(doomed.options(timeout=ENDLESS).call(queue, "consume")) for _ in range(3)]
    await world.blocked(queue, 3)
    await doomed.close()
    for call in taken:
        await fails(gesmas.Closed, call)
    await world.blocked(queue, 0)
    await fails(gesmas.Closed, doomed.call(queue, "length"))


@case
async def operator_cancels(world: World) -> None:
    queue = await world.queue()
    taken = start(world.client.call(queue, "consume"))
    await world.blocked(queue, 1)
    (blocked,) = await world.client.blocked(queue)
    equal(blocked["method"], "consume")
    await world.client.cancel(blocked["invocation"])
    error = await fails(gesmas.Cancelled, taken)
    equal(error.status, 409)


@case
async def key_runs_once(world: World) -> None:
    counter = world.object("Counter")
    key = f"once-{world.object('')}"
    keyed = world.client.options(key=key)
    others = [world.other_client(address).options(key=key) for address in world.face.endpoints]
    equal(await keyed.call(counter, "increment"), 1)
    for other in others:
        equal(await other.call(counter, "increment"), 1)
    both = await asyncio.gather(*(other.call(counter, "increment") for other in others))
    equal(both, [1, 1, 1])
    equal(await world.client.call(counter, "get"), 1)


@case
async def key_reused(world: World) -> None:
    counter = world.object("Counter")
    keyed = world.client.options(key=f"reused-{world.object('')}")
    await keyed.call(counter, "add", number=1)
    error = await fails(gesmas.KeyReused, keyed.call(counter, "add", number=2))
    equal(error.status, 422)
    equal(await world.client.call(counter, "get"), 1)


@case
async def key_waits_on(world: World) -> None:
    queue, key = await world.queue(), f"waits-{world.object('')}"
    running = await fails(
        gesmas.StillRunning, world.client.options(key=key, wait=0.1).call(queue, "consume")
    )
    equal(running.key, key)
    await world.blocked(queue, 1)
    # Whoever waits on may be another client, at another replica.
    waits = start(world.other_client().options(key=running.key).call(queue, "consume"))
    await world.client.call(queue, "produce", item=b"at last")
    equal(await soon(waits), b"at last")
    await world.blocked(queue, 0)


@case
async def stale_read(world: World) -> None:
    counter = world.object("Counter")
    await world.client.call(counter, "add", number=41)
    assert await world.client.options(stale=True).call(counter, "get") in (0, 41)
    equal(await world.client.call(counter, "get"), 41)
