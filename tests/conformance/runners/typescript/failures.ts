// Cases in which replicas die and endpoints are dead.

import assert from "node:assert/strict";
import { Unknown, Unreachable, type Client } from "gesmas";
import { deadEndpoint, fails, soon, start, test, text, until } from "./support.js";

const CALLS = 60;

test("blocked-call-survives-its-replica", async (world) => {
  const [queue, client] = [await world.queue(), world.otherClient()];
  const taken = start(client.call<Uint8Array>(queue, "consume"));
  await world.blocked(queue, 1);
  await world.line.ask("kill", { endpoint: client.endpoint });
  await world.client.call(queue, "produce", { item: "one" });
  await world.client.call(queue, "produce", { item: "two" });
  assert.equal(text(await soon(taken)), "one");
  await world.line.ask("restart");
  assert.equal(await world.client.call(queue, "length"), 1n);
});

test("silent-replica-is-passed-over", async (world) => {
  const [counter, client] = [world.object("Counter"), world.otherClient()];
  assert.equal(await client.call(counter, "get"), 0n);
  const frozen = client.endpoint;
  await world.line.ask("freeze", { endpoint: frozen });
  assert.equal(await client.call(counter, "increment"), 1n);
  assert(client.endpoint !== frozen);
  await world.line.ask("thaw", { endpoint: frozen });
  assert.equal(await world.otherClient([frozen]).call(counter, "increment"), 2n);
});

test("lost-call-without-a-key-is-unknown", async (world) => {
  const [queue, client] = [await world.queue(), world.otherClient()];
  const taken = start(client.call(queue, "consume", {}, { idempotent: false }));
  await world.blocked(queue, 1);
  await world.line.ask("kill", { endpoint: client.endpoint });
  assert.equal((await fails(Unknown, taken)).code, "unknown");
  await world.line.ask("restart");
});

test("exactly-once-under-a-killed-leader", async (world) => {
  const counter = world.object("Counter");
  const acknowledged: bigint[] = [];
  let half: (value?: unknown) => void = () => {};
  const reached = new Promise((resolve) => (half = resolve));
  const count = async (client: Client): Promise<void> => {
    for (let call = 0; call < CALLS; call += 1) {
      acknowledged.push(await client.call<bigint>(counter, "increment"));
      if (acknowledged.length === 4 * CALLS) half();
    }
  };
  const clients = [1, 2, 3, 4].map(() => world.otherClient(world.endpoints, { timeout: "60s" }));
  const tasks = [...clients, ...clients].map((client) => start(count(client)));
  await soon(reached);
  await world.line.ask("kill-leader");
  await Promise.all(tasks);
  // Each was counted, and each count was given to one caller.
  const all = Array.from({ length: 8 * CALLS }, (_, index) => BigInt(index + 1));
  assert.deepEqual(acknowledged.sort((a, b) => Number(a - b)), all);
  assert.equal(await world.client.call(counter, "get"), BigInt(8 * CALLS));
  await world.line.ask("restart");
});

test("outcomes-are-forgotten", async (world) => {
  const counter = world.object("Counter");
  const before = await world.line.ask("sessions");
  for (let call = 0; call < 100; call += 1) await world.client.call(counter, "increment");
  await until("that few outcomes are kept", async () => {
    // The next call has those before it forgotten.
    await world.client.call(counter, "increment");
    return (await world.line.ask("sessions")) <= before + 20;
  });
});

test("unreachable", async (world) => {
  const client = world.otherClient([await deadEndpoint()], { timeout: "500ms" });
  await fails(Unreachable, client.call("Counter/x", "increment"));
});

test("failover", async (world) => {
  const [dead, counter] = [await deadEndpoint(), world.object("Counter")];
  // Wherever they begin, each gets there, with and without keys, and for reads.
  for (let turn = 0; turn < 6; turn += 1) {
    const client = world.otherClient([dead, world.endpoints[turn % 3] ?? dead]);
    await client.call(counter, "increment", {}, { idempotent: turn % 2 === 0 });
    assert.equal(await client.call(counter, "get"), BigInt(turn + 1));
  }
});
