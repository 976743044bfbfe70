// Cases of the handles of standard classes, and of the README.

import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { Barrier, ClassError, Election, Queue, Semaphore } from "gesmas";
import { bytes, fails, soon, start, test, text } from "./support.js";

test("queue-across-languages", async (world) => {
  const queue = await world.queue();
  const taken = start(world.client.call<Uint8Array>(queue, "consume"));
  await world.blocked(queue, 1);
  await world.line.ask("peer", { target: queue, method: "produce", arguments: { item: "für dich" } });
  assert.equal(text(await soon(taken)), "für dich");
  const theirs = start(world.line.ask("peer", { target: queue, method: "consume", arguments: {} }));
  await world.blocked(queue, 1);
  await world.client.call(queue, "produce", { item: bytes(255, 0) });
  assert.equal(await soon(theirs), "ff00");
});

test("queue", async (world) => {
  const queue = new Queue(world.client, world.name);
  await queue.create(2);
  assert.equal(await queue.put("1"), true);
  assert.equal(await queue.put(bytes(50), { timeout: "5s" }), true);
  assert.equal(await queue.put("3", { timeout: 50 }), false);
  assert.equal(await queue.length(), 2n);
  assert.deepEqual([text(await queue.get()), text(await queue.get({ timeout: "5s" }))], ["1", "2"]);
  assert.equal(await queue.get({ timeout: 50 }), null);
  assert.equal(await world.client.call(queue.target, "try_consume"), null);
});

test("barrier", async (world) => {
  const barrier = new Barrier(world.client, world.name);
  await barrier.create(3);
  assert.equal(await barrier.wait({ timeout: 50 }), null);
  for (const generation of [0n, 1n]) {
    const parties = [start(barrier.wait()), start(barrier.wait())];
    await world.blocked(barrier.target, 2);
    assert.equal(await barrier.wait({ timeout: "30s" }), generation);
    assert.deepEqual(await soon(Promise.all(parties)), [generation, generation]);
  }
});

test("semaphore", (world) =>
  world.twoSessions(async (first, second) => {
    const [ours, theirs] = [new Semaphore(first, world.name), new Semaphore(second, world.name)];
    await ours.create(3);
    const grant = await ours.acquire(2);
    assert.equal(await ours.available(), 1n);
    assert.equal(await theirs.acquire(2, { timeout: 50 }), null);
    const waits = start(theirs.acquire(2));
    await world.blocked(ours.target, 1);
    await ours.release(grant);
    assert((await soon(waits)).token > grant.token);
    const error = await fails(ClassError, ours.acquire(4));
    assert.deepEqual([error.variant, error.fields], ["TooMany", { total: 3 }]);
  }));

test("election", (world) =>
  world.twoSessions(async (first, second) => {
    const [ours, theirs] = [new Election(first, world.name), new Election(second, world.name)];
    const lead = await ours.campaign("first");
    const waits = start(theirs.campaign("second"));
    await world.blocked(ours.target, 1);
    const leader = await theirs.leader();
    assert.deepEqual([text(leader?.candidate ?? null), leader?.token], ["first", lead.token]);
    await ours.resign(lead);
    assert((await soon(waits)).token > lead.token);
    assert.equal(text((await ours.leader())?.candidate ?? null), "second");
  }));

test("another-session-gives-nothing-back", (world) =>
  world.twoSessions(async (session, other) => {
    const [lock, members] = [world.object("Lock"), world.object("Membership")];
    const token = await session.call<bigint>(lock, "lock", { owner: 1 });
    assert.equal((await other.call<{ token: bigint }>(lock, "holder")).token, token);
    const unlocks = await fails(ClassError, other.call(lock, "unlock", { token }));
    assert.equal(unlocks.variant, "NotHolder");
    await session.call(lock, "unlock", { token });
    const member = await session.call<bigint>(members, "join", { name: "a", metadata: "" });
    assert.equal(await session.call(members, "join", { name: "a", metadata: "again" }), member);
    const joins = await fails(ClassError, other.call(members, "join", { name: "a", metadata: "" }));
    assert.equal(joins.variant, "NameTaken");
    const leaves = await fails(ClassError, other.call(members, "leave", { name: "a", token: member }));
    assert.equal(leaves.variant, "NotHolder");
  }));

test("retry-of-an-owner", (world) =>
  world.twoSessions(async (session, other) => {
    const lock = world.object("Lock");
    const held = await session.call<bigint>(lock, "lock", { owner: 1 });
    const waits = [1, 2].map(() => start(other.call<bigint>(lock, "lock", { owner: 7 })));
    await world.blocked(lock, 2);
    await session.call(lock, "unlock", { token: held });
    const [first, second] = await soon(Promise.all(waits));
    assert.equal(first, second);
    assert((first ?? 0n) > held);
  }));

test("readme", async (world) => {
  // Compiled with everything else; here it is pointed at the replicas of the test.
  let code = readFileSync(new URL("readme.js", import.meta.url), "utf8");
  world.endpoints.forEach((address, index) => {
    code = code.replaceAll(`http://127.0.0.1:${7180 + index}`, address);
  });
  assert(code.includes(world.endpoints[0] ?? "an endpoint"), "the README has an example");
  const place = new URL(`readme-${process.pid}.js`, import.meta.url);
  writeFileSync(place, code);
  try {
    await import(place.href);
  } finally {
    rmSync(place);
  }
});
