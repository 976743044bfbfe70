// Cases of sessions, locks and events.

import assert from "node:assert/strict";
import { ClassError, SessionOver, type Events, type Session } from "gesmas";
import { PATIENCE, fails, soon, start, test, text, until } from "./support.js";

/** The shortest timeout of a session. */
const SHORT = "5s";

/** Ends when a signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
}

test("no-session", async (world) => {
  const error = await fails(ClassError, world.client.call(world.object("Lock"), "lock", { owner: 1 }));
  assert.equal(error.variant, "NoSession");
});

test("session-over", async (world) => {
  const session = await world.client.session();
  await session.call(world.object("Lock"), "lock", { owner: 1 });
  await session.close();
  assert.deepEqual([session.isLost, session.state, session.lost.aborted], [true, "over", true]);
  await fails(SessionOver, session.call(world.object("Lock"), "lock", { owner: 1 }));
  await session.close();
});

test("session-lost-is-told", async (world) => {
  const session = await world.client.session({ timeout: SHORT });
  assert.deepEqual([session.timeout, session.isLost, session.lost.aborted], [5_000, false, false]);
  const lost = aborted(session.lost);
  await world.line.ask("end-session", { session: session.id });
  // Found out by the keep-alive from aside, long before the timeout could have passed unheard.
  await soon(lost);
  assert.equal(session.state, "over");
  await fails(SessionOver, session.keepAlive());
});

test("session-doubted", async (world) => {
  const session = await world.client.session({ timeout: SHORT });
  await session.lock(world.name).with(async (held) => {
    await session.keepAlive();
    await world.line.ask("kill-majority");
    await soon(aborted(held.lost));
    assert.deepEqual([held.isLost, session.state], [true, "doubtful"]);
    await world.line.ask("restart");
    await until("that the session is safe again", () => session.state === "open");
    assert(!session.lost.aborted, "what is safe again gives a fresh signal");
    // It was never over: the lock is still this session's.
    const holder = await world.client.call<{ token: bigint }>(world.object("Lock"), "holder");
    assert.equal(holder.token, held.token);
  });
  await session.close();
});

test("session-survives-its-replica", async (world) => {
  const client = world.otherClient();
  const work = (session: Session): Promise<void> =>
    session.lock(world.name).with(async (held) => {
      await world.line.ask("kill", { endpoint: client.endpoint });
      const holder = await session.call<{ token: bigint }>(world.object("Lock"), "holder");
      assert.equal(holder.token, held.token);
      await session.keepAlive();
      assert.equal(session.state, "open");
    });
  await world.session({}, work, client);
  await world.line.ask("restart");
});

test("lock-excludes", (world) =>
  world.twoSessions(async (first, second) => {
    const [ours, theirs] = [first.lock(world.name), second.lock(world.name)];
    const held = await ours.acquire();
    assert.equal(await theirs.tryAcquire(), null);
    const waits = start(theirs.acquire());
    await world.blocked(ours.target, 1);
    assert.equal((await ours.holder())?.session, BigInt(first.id));
    await ours.release(held);
    const taken = await soon(waits);
    assert(taken.token > held.token);
    // A guard gives back once; what is given back once more by hand is not held.
    await ours.release(held);
    const again = first.call(ours.target, "unlock", { token: held.token });
    assert.equal((await fails(ClassError, again)).variant, "NotHeld");
    assert.equal((await ours.holder())?.token, taken.token);
    await theirs.release(taken);
  }));

test("lock-released-by-closing", async (world) => {
  const first = await world.client.session();
  const held = await first.lock(world.name).acquire();
  await world.session({}, async (second) => {
    const waits = start(second.lock(world.name).acquire());
    await world.blocked(world.object("Lock"), 1);
    await first.close();
    assert((await soon(waits)).token > held.token);
  });
});

test("lock-released-by-expiry", async (world) => {
  const gone = world.otherClient();
  const first = await gone.session({ timeout: SHORT });
  const held = await first.lock(world.name).acquire();
  await world.session({}, async (second) => {
    const waits = start(second.lock(world.name).acquire());
    await world.blocked(world.object("Lock"), 1);
    // Without closing the session, as when a program dies.
    await gone.close();
    assert((await soon(waits)).token > held.token);
  });
});

test("lock-tells-owners-apart", (world) =>
  world.session({}, async (session) => {
    const [one, other] = [session.lock(world.name), session.lock(world.name)];
    const [held, again] = [await one.acquire(), await one.acquire()];
    assert.equal(again.token, held.token);
    const waits = start(other.acquire());
    await world.blocked(one.target, 1);
    await held.release();
    await held.release();
    await world.blocked(one.target, 1);
    await again.release();
    assert((await soon(waits)).token > held.token);
  }));

test("lock-context", (world) =>
  world.session({}, async (session) => {
    const lock = session.lock(world.name);
    const within = new Error("within");
    const work = lock.with(async (held) => {
      assert.equal((await lock.holder())?.token, held.token);
      assert.deepEqual([held.isLost, held.lost.aborted], [false, false]);
      throw within;
    });
    assert.equal(await work.catch((error: unknown) => error), within);
    assert.equal(await lock.holder(), null);
    assert.equal(await lock.with(async () => "result"), "result");
  }));

test("lock-waits-for-a-while", (world) =>
  world.twoSessions(async (first, second) => {
    const held = await first.lock(world.name).acquire();
    assert.equal(await second.lock(world.name).acquire({ timeout: "200ms" }), null);
    await world.blocked(world.object("Lock"), 0);
    await held.release();
    assert((await second.lock(world.name).acquire({ timeout: PATIENCE })) !== null);
  }));

/** The numbers of the next events, whose payloads are their numbers too. */
async function numbers(events: Events, count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const { value, done } = await soon(events.next());
    assert(done !== true && value.kind === "event", `the events ended after ${found.join()}`);
    assert.equal(text(value.payload), String(value.number));
    found.push(Number(value.number));
  }
  return found;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

test("events-in-order", async (world) => {
  const echo = await world.echo();
  await world.session({}, async (session) => {
    const first = start(numbers(session.events(), 30));
    for (const from of [1, 11, 21]) await session.call(echo, "emit", { from, count: 10 });
    assert.deepEqual(await first, range(1, 30));
  });
});

test("events-after-a-reconnection", async (world) => {
  const echo = await world.echo();
  await world.session({}, async (session) => {
    const events = session.events();
    await session.call(echo, "emit", { from: 1, count: 10 });
    assert.deepEqual(await numbers(events, 4), range(1, 4));
    events.reconnect();
    await session.call(echo, "emit", { from: 11, count: 10 });
    assert.deepEqual(await numbers(events, 10), range(5, 14));
    const waits = start(numbers(events, 7));
    events.reconnect();
    await session.call(echo, "emit", { from: 21, count: 1 });
    assert.deepEqual(await waits, range(15, 21));
  });
});

test("events-acknowledged", async (world) => {
  const echo = await world.echo();
  await world.session({}, async (session) => {
    await session.call(echo, "emit", { from: 1, count: 10 });
    const first = session.events();
    assert.deepEqual(await numbers(first, 6), range(1, 6));
    first.close();
    // The sixth was given and not acknowledged: nobody has asked for the seventh.
    const second = session.events();
    assert.deepEqual(await numbers(second, 1), [6]);
    session.acknowledge(8n);
    await session.keepAlive();
    second.close();
    assert.deepEqual(await numbers(session.events(), 2), [9, 10]);
  });
});

test("events-gap", async (world) => {
  const echo = await world.echo();
  await world.session({}, async (session) => {
    for (let from = 1; from <= 1_100; from += 100) await session.call(echo, "emit", { from, count: 100 });
    const events = session.events();
    assert.deepEqual((await soon(events.next())).value, { kind: "gap", first: 1n, last: 100n });
    assert.deepEqual(await numbers(events, 1_000), range(101, 1_100));
  });
});

test("events-survive-a-replica", async (world) => {
  const [echo, client] = [await world.echo(), world.otherClient()];
  const work = async (session: Session): Promise<void> => {
    const events = session.events();
    await session.call(echo, "emit", { from: 1, count: 3 });
    assert.deepEqual(await numbers(events, 3), [1, 2, 3]);
    const waits = start(numbers(events, 2));
    await world.line.ask("kill", { endpoint: client.endpoint });
    await session.call(echo, "emit", { from: 4, count: 2 });
    assert.deepEqual(await waits, [4, 5]);
  };
  await world.session({}, work, client);
  await world.line.ask("restart");
});

test("events-end-with-the-session", async (world) => {
  const echo = await world.echo();
  const session = await world.client.session();
  const first = session.events();
  await session.call(echo, "emit", { from: 1, count: 1 });
  assert.deepEqual(await numbers(first, 1), [1]);
  // The stream of another reader takes over; the first takes it back when it notices, and neither ends.
  const second = session.events();
  assert.deepEqual(await numbers(second, 1), [1]);
  await session.call(echo, "emit", { from: 2, count: 1 });
  assert.deepEqual(await numbers(second, 1), [2]);
  assert.equal(session.state, "open");
  second.close();
  const rest = async (): Promise<void> => {
    for await (const event of first) void event;
  };
  const ends = start(rest());
  await world.line.ask("end-session", { session: session.id });
  await soon(ends);
  assert.equal(session.state, "over");
});
