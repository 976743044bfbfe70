// Cases of threads of a program that has a client.

import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { Lock } from "gesmas";
import { soon, test, type World } from "./support.js";

const [CHILDREN, CALLS] = [3, 60];

/** Runs code in a thread, which imports the client anew. */
function worker(world: World, code: string, data: object): Promise<any> {
  const all = { endpoints: world.endpoints, library: import.meta.resolve("gesmas"), ...data };
  const lines = `
    const { parentPort, workerData } = require("node:worker_threads");
    import(workerData.library).then(async ({ Client, Lock }) => {
      const { name, label, calls } = workerData;
      const client = new Client(workerData.endpoints);
      ${code}
      await client.close();
    });`;
  return new Promise((resolve, reject) => {
    const thread = new Worker(lines, { eval: true, workerData: all });
    thread.on("message", resolve);
    thread.on("error", reject);
  });
}

test("child-starts-anew", async (world) => {
  const count = `
    const all = [];
    for (let call = 0; call < calls; call += 1) all.push(await client.call("Counter/" + name + label, "increment"));
    parentPort.postMessage(all);`;
  const labels = Array.from({ length: CHILDREN }, (_, index) => index + 1);
  const children = labels.map((label) => worker(world, count, { name: world.name, label, calls: CALLS }));
  const wanted = Array.from({ length: CALLS }, (_, index) => BigInt(index + 1));
  const own: bigint[] = [];
  for (let call = 0; call < CALLS; call += 1) own.push(await world.client.call<bigint>(`Counter/${world.name}0`, "increment"));
  assert.deepEqual(own, wanted);
  for (const child of children) assert.deepEqual(await soon(child), wanted);
});

test("child-holds-nothing", (world) =>
  world.session({}, async (session) => {
    const lock = new Lock(session, world.name);
    await lock.with(async (held) => {
      // None of it can be handed to another thread: it is not data.
      for (const thing of [world.client, session, lock, held]) {
        assert.throws(() => structuredClone(thing), /could not be cloned/);
      }
      const alone = `
        const taken = await client.withSession((session) => new Lock(session, name).tryAcquire());
        parentPort.postMessage(taken === null);`;
      assert.equal(await soon(worker(world, alone, { name: world.name })), true);
      assert.equal((await lock.holder())?.token, held.token);
    });
  }));
