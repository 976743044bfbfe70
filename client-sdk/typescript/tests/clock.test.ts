// The clock, and what is counted by it: with clocks that jump, stand still and lie, and a server that loses answers.
// Beside it, what guards share, as such a server shows it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { Clock, safeUntil, use } from "gesmas/internal/clock.js";
import { Core } from "gesmas/internal/core.js";
import { Grant, type Way } from "gesmas/internal/grants.js";
import { SessionCore } from "gesmas/internal/session.js";
import { after } from "gesmas/internal/transport.js";

const HOUR = 3_600_000;
const NEAR = 1;

/** A machine whose wall clock is set, and whose steady clock stands still while it sleeps. */
class Machine {
  steady = 100;
  wall = 1_700_000_000_000;
  readonly clock = new Clock(
    () => this.steady,
    () => this.wall,
  );

  passes(milliseconds: number): void {
    this.steady += milliseconds;
    this.wall += milliseconds;
  }

  sleeps(milliseconds: number): void {
    this.wall += milliseconds;
  }
}

function near(found: number, wanted: number): void {
  assert(Math.abs(found - wanted) < NEAR, `${found} is not about ${wanted}`);
}

test("time passes and sleep counts", () => {
  const machine = new Machine();
  const start = machine.clock.now();
  machine.passes(5_000);
  near(machine.clock.now() - start, 5_000);
  machine.sleeps(HOUR);
  near(machine.clock.now() - start, HOUR + 5_000);
  machine.passes(5_000);
  near(machine.clock.now() - start, HOUR + 10_000);
});

test("what the wall clock loses is never taken back", () => {
  const machine = new Machine();
  use(machine.clock);
  const start = machine.clock.now();
  machine.wall += HOUR;
  const ahead = machine.clock.now();
  machine.wall -= HOUR;
  assert.equal(machine.clock.now(), ahead);
  // A lease that was counted while it was ahead ends in its time, and not an hour later.
  const until = safeUntil(machine.clock.now(), 30_000);
  machine.passes(30_000);
  assert(machine.clock.now() >= until);
  near(machine.clock.now() - start, HOUR + 30_000);
});

test("a step back hides no sleep after it", () => {
  const machine = new Machine();
  const start = machine.clock.now();
  machine.wall += HOUR;
  machine.clock.now();
  machine.wall -= 3 * HOUR;
  machine.clock.now();
  machine.sleeps(HOUR);
  near(machine.clock.now() - start, 2 * HOUR);
});

test("no reading is smaller and none counts less than has passed", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    let state = seed;
    const draw = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state / 2 ** 31;
    };
    const machine = new Machine();
    const begin = machine.clock.now();
    let [passed, sleeps, last] = [0, 0, begin];
    for (let turn = 0; turn < 200; turn += 1) {
      const step = -3_000 * Math.log(1 - draw());
      const what = draw();
      if (what < 0.25) {
        machine.sleeps(step);
        passed += step;
        sleeps += 1;
      } else if (what < 0.5) {
        machine.wall += (draw() < 0.5 ? -1 : 1) * -100_000 * Math.log(1 - draw());
      } else {
        machine.passes(step);
        passed += step;
      }
      const reading = machine.clock.now();
      assert(reading >= last, `seed ${seed}`);
      assert(reading - begin >= passed - sleeps * machine.clock.blind - NEAR, `seed ${seed}`);
      last = reading;
    }
  }
});

test("noise between two clocks adds up to nothing", () => {
  const machine = new Machine();
  const start = machine.clock.now();
  for (let turn = 0; turn < 100_000; turn += 1) {
    machine.passes(1);
    machine.wall += turn % 2 === 0 ? 20 : -20;
    machine.clock.now();
  }
  near((machine.clock.now() - start) / 100, 1_000);
});

test("a lease counts from the first sending of its opening", async () => {
  const machine = new Machine();
  use(machine.clock);
  let openings = 0;
  const server = createServer((request, response) => {
    if (!request.url.endsWith("/sessions")) return request.socket.destroy();
    openings += 1;
    if (openings < 3) {
      // The cluster has heard it; its answer does not arrive.
      machine.passes(7_500);
      return request.socket.destroy();
    }
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ session: "5", timeout: "30s" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const core = new Core([`http://127.0.0.1:${server.address().port}`]);
  try {
    const session = await SessionCore.open(core, 30_000, 30_000);
    assert.equal(session.state, "open");
    machine.passes(15_000 - machine.clock.blind - 1);
    assert.equal(session.state, "open");
    machine.passes(1);
    assert.equal(session.state, "doubtful");
  } finally {
    await core.close();
    server.close();
  }
});

test("what a session has once is given back with the last of its guards", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    const described = { methods: [{ name: "leave", parameters: [{ name: "token", type: "u64" }], result: "unit" }] };
    const opened = { session: "5", timeout: "600s" };
    const body = request.url.endsWith("/sessions") ? opened : request.url.includes("/classes/") ? described : { result: null };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const core = new Core([`http://127.0.0.1:${server.address().port}`]);
  try {
    const session = await SessionCore.open(core, 600_000, 30_000);
    const way: Way<bigint> = {
      target: "Membership/m",
      endless: ["join", {}],
      back: (token) => ["leave", { token }],
      isShared: true,
    };
    const [first, again] = ["first", "again"].map((key) => new Grant(core, session, way, 17n, key));
    await first?.giveBack();
    await first?.giveBack();
    assert.deepEqual([first?.isLeft, asked.length], [true, 1]);
    await again?.giveBack();
    await again?.giveBack();
    assert.deepEqual(asked.slice(2), ["/v1/objects/Membership/m/leave"]);
  } finally {
    await core.close();
    server.close();
  }
});

test("a timer of any length ends when it should", async () => {
  let ended = false;
  const stop = after(2 ** 31 + 1_000, () => (ended = true));
  const endless = after(Infinity, () => (ended = true));
  await new Promise<void>((resolve) => after(20, resolve));
  stop();
  endless();
  assert.equal(ended, false);
});
