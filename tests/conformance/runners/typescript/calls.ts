// Cases of values, errors, objects, and what ends a call.

import assert from "node:assert/strict";
import {
  ArgumentError,
  Cancelled,
  ClassError,
  ClassUnknown,
  Closed,
  DeadlineExceeded,
  Duration,
  KeyReused,
  MethodUnknown,
  ObjectExists,
  ObjectRemoved,
  ObjectUnknown,
  Some,
  StillRunning,
  Time,
  Trapped,
  Variant,
} from "gesmas";
import { bytes, fails, soon, start, test, text } from "./support.js";

const WIDE = (1n << 64n) - 1n;
/** Longer than any case waits: a call that is gone earlier was cancelled. */
const ENDLESS = "10m";

test("values-numbers", async (world) => {
  const echo = await world.echo();
  const least = {
    a: 0, b: 0, c: 0, d: 0n, e: 0n,
    f: -128, g: -(2 ** 15), h: -(2 ** 31), i: -(1n << 63n), j: -(1n << 127n),
  };
  const greatest = {
    a: 255, b: 2 ** 16 - 1, c: 2 ** 32 - 1, d: WIDE, e: (1n << 128n) - 1n,
    f: 127, g: 2 ** 15 - 1, h: 2 ** 31 - 1, i: (1n << 63n) - 1n, j: (1n << 127n) - 1n,
  };
  for (const value of [least, greatest]) {
    assert.deepEqual(await world.client.call(echo, "numbers", { value }), value);
  }
  // What fits a number may be given as one, and comes back as what the type says.
  const found = await world.client.call<{ d: unknown; a: unknown }>(echo, "numbers", { value: { ...least, a: 3n, d: 5 } });
  assert.deepEqual([found.a, found.d], [3, 5n]);
});

test("values-plain", async (world) => {
  const echo = await world.echo();
  const value = {
    flag: true,
    text: '"ö\u2028\u{1f600}\n',
    bytes: Uint8Array.from({ length: 256 }, (_, index) => index),
    four: new TextEncoder().encode("text"),
    duration: new Duration(WIDE),
    time: new Time(WIDE),
    nothing: null,
  };
  assert.deepEqual(await world.client.call(echo, "plain", { value }), value);
  // JavaScript's own types go in too.
  const date = new Date("2026-11-27T10:00:00.250Z");
  const again = { ...value, duration: 1500, time: date, text: "", four: "four" };
  const found = await world.client.call<typeof value>(echo, "plain", { value: again });
  assert.deepEqual([found.duration.milliseconds, found.time.toDate(), text(found.four)], [1500, date, "four"]);
});

test("values-nested", async (world) => {
  const echo = await world.echo();
  const value = {
    option: 5,
    deep: new Some(null),
    list: [bytes(), bytes(255), bytes(116)],
    set: new Set(["a", "b", "ö"]),
    numbers: new Set([1n, 10n, WIDE]),
    tuple: [255, "text"],
    by_text: new Map([["", 0n], ["k", WIDE]]),
    by_number: new Map([[2n, "two"], [WIDE, "last"]]),
    by_bytes: new Map([[bytes(107), 2], [bytes(255), 1]]),
    by_pair: new Map([[[1, false], new Time(0n)], [[1, true], new Time(1n)]]),
  };
  const call = (value: object): Promise<any> => world.client.call(echo, "nested", { value });
  assert.deepEqual(await call(value), value);
  const nothing = { ...value, option: null, deep: null, list: [], set: new Set(), by_text: new Map() };
  assert.deepEqual(await call(nothing), nothing);
  assert.deepEqual((await call({ ...value, deep: new Some(3) })).deep, new Some(3));
  assert.deepEqual((await call({ ...value, by_text: { k: 1 } })).by_text, new Map([["k", 1n]]));
});

test("values-shapes", async (world) => {
  const echo = await world.echo();
  const value = [
    "Dot",
    new Variant("Circle", WIDE),
    new Variant("Line", [[1, "a"], [2, "b"]]),
    new Variant("Box", { width: WIDE, height: null }),
    new Variant("Box", { width: 0n, height: WIDE }),
  ];
  assert.deepEqual(await world.client.call(echo, "shapes", { value }), value);
  const written = { value: [{ Box: { width: 1, height: 2n } }] };
  assert.deepEqual(await world.client.call(echo, "shapes", written), [new Variant("Box", { width: 1n, height: 2n })]);
});

test("option-left-out", async (world) => {
  const echo = await world.echo();
  assert.equal(await world.client.call(echo, "maybe"), null);
  assert.equal(await world.client.call(echo, "maybe", { number: undefined }), null);
  assert.equal(await world.client.call(echo, "maybe", { number: 1n << 63n }), 1n << 63n);
});

test("class-error", async (world) => {
  const echo = await world.echo();
  const error = await fails(ClassError, world.client.call(echo, "fail", { mark: 8 }));
  assert.deepEqual([error.variant, error.error, error.fields, error.aborted], ["Asked", "Asked", undefined, false]);
  assert.deepEqual([error.code, error.status], ["failed", 422]);
  assert(error.detail.includes("fail of Echo/"), error.detail);
  assert.equal(await world.client.call(echo, "mark"), 8n);
});

test("class-error-with-fields", async (world) => {
  const echo = await world.echo();
  const told = { number: WIDE, bytes: bytes(255, 0) };
  const error = await fails(ClassError, world.client.call(echo, "tell", told));
  assert.equal(error.variant, "Told");
  assert.deepEqual(error.fields, told);
});

test("class-error-aborted", async (world) => {
  const echo = await world.echo();
  const error = await fails(ClassError, world.client.call(echo, "abort", { mark: 8 }));
  assert.deepEqual([error.variant, error.aborted], ["Asked", true]);
  assert.equal(await world.client.call(echo, "mark"), 7n);
});

test("trap-has-an-id", async (world) => {
  const echo = await world.echo();
  const error = await fails(Trapped, world.client.call(echo, "panic", { mark: 8 }));
  assert(error.id?.length === 16 && error.detail.includes("on purpose"), error.detail);
  assert.equal(await world.client.call(echo, "mark"), 7n);
});

test("argument-named", async (world) => {
  const queue = await world.queue();
  for (const item of [3, Symbol("nothing"), ["a", 1]]) {
    const error = await fails(ArgumentError, world.client.call(queue, "produce", { item }));
    assert(error.detail.includes("`item`"), error.detail);
  }
  const error = await fails(ArgumentError, world.client.call(queue, "produce", { thing: 1 }));
  assert(error.detail.includes('"thing"'), error.detail);
  assert.equal(await world.client.call(queue, "length"), 0n);
});

test("argument-missing", async (world) => {
  const error = await fails(ArgumentError, world.client.call(await world.queue(), "produce"));
  assert(error.detail.includes('"item"'), error.detail);
});

test("unknown-names", async (world) => {
  const { client } = world;
  const error = await fails(ClassUnknown, client.call("Nothing/x", "run"));
  assert(error.advice !== undefined);
  await fails(MethodUnknown, client.call(await world.queue(), "fetch"));
  await fails(ObjectUnknown, client.call("Queue/never-created", "consume"));
  await fails(ArgumentError, client.call("Queue", "consume"));
  await fails(ArgumentError, client.call(`Queue/${"x".repeat(5_000)}`, "consume"));
});

test("object-created", async (world) => {
  const queue = await world.queue(3);
  await world.client.create(queue, { capacity: 3 });
  await fails(ObjectExists, world.client.create(queue, { capacity: 4 }));
  await fails(ArgumentError, world.client.create(queue));
});

test("object-removed", async (world) => {
  const queue = await world.queue();
  const taken = start(world.client.call(queue, "consume"));
  await world.blocked(queue, 1);
  await world.client.remove(queue);
  await fails(ObjectRemoved, taken);
  await world.client.remove(queue);
  await fails(ObjectUnknown, world.client.call(queue, "length"));
});

test("deadline-cancels", async (world) => {
  const queue = await world.queue();
  for (const idempotent of [true, false]) {
    const call = world.client.call(queue, "consume", {}, { timeout: "300ms", idempotent });
    assert.equal((await fails(DeadlineExceeded, call)).code, "cancelled");
    await world.blocked(queue, 0);
  }
});

for (const [name, idempotent] of [["hang-up-cancels", false], ["giving-up-cancels", true]] as const) {
  test(name, async (world) => {
    const queue = await world.queue();
    const [abort, reason] = [new AbortController(), new Error("given up")];
    const taken = start(world.client.call(queue, "consume", {}, { idempotent, signal: abort.signal, timeout: ENDLESS }));
    await world.blocked(queue, 1);
    abort.abort(reason);
    assert.equal(await soon(taken).catch((error: unknown) => error), reason);
    await world.blocked(queue, 0);
    await world.client.call(queue, "produce", { item: "kept" });
    assert.equal(await world.client.call(queue, "length"), 1n);
  });
}

test("closing-cancels", async (world) => {
  const [queue, doomed] = [await world.queue(), world.otherClient()];
  const taken = [1, 2, 3].map(() => start(doomed.call(queue, "consume", {}, { timeout: ENDLESS })));
  await world.blocked(queue, 3);
  await doomed.close();
  for (const call of taken) await fails(Closed, call);
  await world.blocked(queue, 0);
  await fails(Closed, doomed.call(queue, "length"));
});

test("operator-cancels", async (world) => {
  const queue = await world.queue();
  const taken = start(world.client.call(queue, "consume"));
  await world.blocked(queue, 1);
  const [blocked] = await world.client.blocked(queue);
  assert.equal(blocked?.["method"], "consume");
  await world.client.cancel(String(blocked?.["invocation"]));
  assert.equal((await fails(Cancelled, taken)).status, 409);
});

test("key-runs-once", async (world) => {
  const [counter, key] = [world.object("Counter"), "once-typescript"];
  assert.equal(await world.client.call(counter, "increment", {}, { key }), 1n);
  const others = world.endpoints.map((address) => world.otherClient([address]));
  for (const other of others) assert.equal(await other.call(counter, "increment", {}, { key }), 1n);
  const all = others.map((other) => other.call(counter, "increment", {}, { key }));
  assert.deepEqual(await Promise.all(all), [1n, 1n, 1n]);
  assert.equal(await world.client.call(counter, "get"), 1n);
});

test("key-reused", async (world) => {
  const [counter, key] = [world.object("Counter"), "reused-typescript"];
  await world.client.call(counter, "add", { number: 1 }, { key });
  const error = await fails(KeyReused, world.client.call(counter, "add", { number: 2 }, { key }));
  assert.equal(error.status, 422);
  assert.equal(await world.client.call(counter, "get"), 1n);
});

test("key-waits-on", async (world) => {
  const [queue, key] = [await world.queue(), "waits-typescript"];
  const running = await fails(StillRunning, world.client.call(queue, "consume", {}, { key, wait: "100ms" }));
  assert.equal(running.key, key);
  await world.blocked(queue, 1);
  // Whoever waits on may be another client, at another replica.
  const waits = start(world.otherClient().call<Uint8Array>(queue, "consume", {}, { key: running.key }));
  await world.client.call(queue, "produce", { item: "at last" });
  assert.equal(text(await soon(waits)), "at last");
  await world.blocked(queue, 0);
});

test("stale-read", async (world) => {
  const counter = world.object("Counter");
  await world.client.call(counter, "add", { number: 41 });
  const stale = await world.client.call<bigint>(counter, "get", {}, { stale: true });
  assert([0n, 41n].includes(stale));
  assert.equal(await world.client.call(counter, "get"), 41n);
});
