// Cases of what is held: given up in every way, at every moment, for everything that can be held.
//
// Races are drawn, many of them, from a seed that is printed; one that went wrong is found at the end, as something
// that is held and that nobody has.

import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  Closed,
  Election,
  Guard,
  Lease,
  Lock,
  Membership,
  NotHeld,
  ObjectUnknown,
  RwLock,
  Semaphore,
  type Caller,
  type Client,
  type Session,
} from "gesmas";
import { parseDuration } from "gesmas/internal/values.js";
import { soon, start, test, text, until, type World } from "./support.js";

/** Races for each kind. */
const ROUNDS = 15;

interface Waiting {
  readonly signal?: AbortSignal;
  readonly timeout?: number;
}

type Take = (session: Session, name: string, waiting: Waiting) => Promise<Guard | null>;

/** Something that can be held: how it is taken, and what tells that it is free. */
interface Kind {
  readonly name: string;
  readonly className: string;
  readonly take: Take;
  /** What is in its way, if that is not the same. */
  readonly rival?: Take;
  readonly isFree: (client: Client, target: string) => Promise<boolean>;
  /** It is refused, and not waited for, while another has it. */
  readonly isRefused?: boolean;
}

/** Whether a read finds nobody. */
function nobody(method: string, given: Record<string, unknown> = {}): Kind["isFree"] {
  return async (client, target) => {
    try {
      const found = await client.call<any>(target, method, given);
      const list = found?.holders ?? found?.members ?? found;
      return list === null || list.length === 0;
    } catch (error) {
      if (error instanceof ObjectUnknown) return true;
      throw error;
    }
  };
}

const holders = nobody("holders", { after: 0, limit: 10 });
const write: Take = (session, name, waiting) => new RwLock(session, name).write(waiting as object);

const KINDS: Kind[] = [
  {
    name: "lock",
    className: "Lock",
    take: (session, name, waiting) => new Lock(session, name).acquire(waiting as object),
    isFree: nobody("holder"),
  },
  {
    name: "reader",
    className: "RwLock",
    take: (session, name, waiting) => new RwLock(session, name).read(waiting as object),
    rival: write,
    isFree: holders,
  },
  { name: "writer", className: "RwLock", take: write, isFree: holders },
  {
    name: "permits",
    className: "Semaphore",
    take: (session, name, waiting) => new Semaphore(session, name).acquire(2, waiting as object),
    isFree: async (client, target) => (await client.call(target, "available")) === 2n,
  },
  {
    name: "leader",
    className: "Election",
    take: (session, name, waiting) => new Election(session, name).campaign("me", waiting as object),
    isFree: nobody("leader"),
  },
  {
    name: "lease",
    className: "Lease",
    take: (session, name, waiting) => new Lease(session as Caller, name).acquire("me", "10m", waiting as object),
    isFree: nobody("holder"),
  },
  {
    name: "member",
    className: "Membership",
    take: (session, name, { signal }) =>
      new Membership(session, name).join("me", "", signal === undefined ? {} : { signal }),
    isFree: nobody("members", { after: "", limit: 10 }),
    isRefused: true,
  },
];
const BLOCKING = KINDS.filter((kind) => kind.isRefused !== true);

async function nameOf(world: World, kind: Kind, round = 0): Promise<string> {
  const name = `${world.name}-${kind.name}-${round}`;
  if (kind.className === "Semaphore") await world.client.create(`Semaphore/${name}`, { permits: 2 });
  return name;
}

function free(world: World, kind: Kind, name: string, why: string): Promise<void> {
  const target = `${kind.className}/${name}`;
  return until(`that nobody holds ${target} (${why})`, () => kind.isFree(world.client, target));
}

/** Draws from a seed, which is printed. */
function drawing(world: World): () => number {
  let state = Math.floor(Math.random() * 2 ** 31);
  console.error(`${world.name}: seed ${state}`);
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 2 ** 31;
  };
}

/** A moment of a race: no result depends on how long it is. */
function afterAWhile(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const GIVEN_UP = new Error("given up");

/** What a wait has in the end; none if it was given up. */
async function taken(wait: Promise<Guard | null>): Promise<Guard | null> {
  try {
    return await soon(wait);
  } catch (error) {
    if (error === GIVEN_UP || (error as Error).name === "TimeoutError") return null;
    throw error;
  }
}

async function rivalled(kind: Kind, rival: Session, name: string): Promise<Guard> {
  const held = await (kind.rival ?? kind.take)(rival, name, {});
  assert(held !== null);
  return held;
}

test("given-up-while-waiting", (world) =>
  world.twoSessions(async (rival, ours) => {
    for (const kind of BLOCKING) {
      const name = await nameOf(world, kind);
      const [held, abort] = [await rivalled(kind, rival, name), new AbortController()];
      const waits = start(kind.take(ours, name, { signal: abort.signal }));
      await world.blocked(`${kind.className}/${name}`, 1);
      abort.abort(GIVEN_UP);
      assert.equal(await taken(waits), null);
      await world.blocked(`${kind.className}/${name}`, 0);
      await held.release();
      await free(world, kind, name, "a wait was given up");
    }
  }));

/** Lets many races of one kind run, and looks at the end whether nobody holds anything. */
async function races(
  world: World,
  kinds: Kind[],
  why: string,
  race: (kind: Kind, name: string, rival: Session, ours: Session, round: number) => Promise<void>,
): Promise<void> {
  const client = world.otherClient();
  const ours = await client.session({ timeout: "2m" });
  const played: [Kind, string][] = [];
  await world.session({}, async (rival) => {
    for (const kind of kinds) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = await nameOf(world, kind, round);
        played.push([kind, name]);
        await race(kind, name, rival, ours, round);
      }
    }
    // This waits for what is withdrawn and given back; the session lives on, with all that it holds.
    await client.close();
    for (const [kind, name] of played) await free(world, kind, name, why);
  });
}

test("given-up-at-the-grant", (world) => {
  const draw = drawing(world);
  return races(world, BLOCKING, "a wait was given up at the grant", async (kind, name, rival, ours) => {
    const [held, abort] = [await rivalled(kind, rival, name), new AbortController()];
    const waits = start(kind.take(ours, name, { signal: abort.signal }));
    await world.blocked(`${kind.className}/${name}`, 1);
    const gives = start(held.release());
    await afterAWhile(draw() * 8);
    abort.abort(GIVEN_UP);
    await (await taken(waits))?.release();
    await gives;
  });
});

test("given-up-on-arrival", (world) => {
  const draw = drawing(world);
  return races(world, KINDS, "an acquisition was given up on arrival", async (kind, name, _, ours) => {
    const abort = new AbortController();
    const takes = start(kind.take(ours, name, { signal: abort.signal }));
    await afterAWhile(draw() * 10);
    abort.abort(GIVEN_UP);
    await (await taken(takes))?.release();
  });
});

test("given-up-at-release", (world) =>
  // Nobody waits for the answer, and the client is closed at last while some are under way.
  races(world, KINDS, "a release was given up", async (kind, name, _, ours, round) => {
    const held = await kind.take(ours, name, {});
    assert(held !== null);
    if (round % 2 === 0) {
      start(held.release());
    } else {
      await using within = held;
      assert(!within.isLost);
    }
  }));

test("given-up-without-a-cluster", (world) =>
  // While no replica runs, a wait and a release are given up: both are seen through once the cluster is back.
  world.session({}, async (ours) => {
    const rival = await world.client.session({ timeout: "8s" });
    const [heldName, waitedName] = [`${world.name}-held`, `${world.name}-waited`];
    const [held, theirs] = [await ours.lock(heldName).acquire(), await rival.lock(waitedName).acquire()];
    const abort = new AbortController();
    const waits = start(ours.lock(waitedName).acquire({ signal: abort.signal }));
    await world.blocked(`Lock/${waitedName}`, 1);
    for (const endpoint of world.endpoints) await world.line.ask("kill", { endpoint });
    start(held.release());
    abort.abort(GIVEN_UP);
    assert.equal(await taken(waits), null);
    // Longer than one attempt at a withdrawal lasts.
    await until("that the other session is doubted", () => rival.isLost);
    await world.line.ask("restart");
    const isFree = (name: string): Promise<boolean> => nobody("holder")(world.client, `Lock/${name}`);
    await until("that what was released is free", () => isFree(heldName));
    await world.blocked(`Lock/${waitedName}`, 0);
    await theirs.release();
    await rival.close();
    await until("that what was waited for is free", () => isFree(waitedName));
  }));

test("given-up-by-timeout", (world) => {
  const draw = drawing(world);
  return races(world, BLOCKING, "the time was up", async (kind, name, rival, ours, round) => {
    const [held, limit] = [await rivalled(kind, rival, name), Math.floor(20 + draw() * 20)];
    const waiting = round % 2 === 0 ? { timeout: limit } : { signal: AbortSignal.timeout(limit) };
    const waits = start(kind.take(ours, name, waiting));
    await afterAWhile(15 + draw() * 30);
    await held.release();
    await (await taken(waits))?.release();
  });
});

/** Has garbage collected, now. */
function collecting(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

test("guard-gives-back", (world) =>
  world.session({}, async (session) => {
    const collect = collecting();
    for (const kind of KINDS) {
      const [name, target] = [await nameOf(world, kind), `${kind.className}/${await nameOf(world, kind)}`];
      const held = await kind.take(session, name, {});
      assert.deepEqual([await kind.isFree(world.client, target), held?.isLost], [false, false]);
      held?.check();
      await held?.release();
      await held?.release();
      assert.deepEqual([await kind.isFree(world.client, target), held?.isLost], [true, true]);
      assert.equal(thrown(() => held?.check()) instanceof NotHeld, true);
      // One that nobody has any more, since its promise lost a race say, is given back too.
      await Promise.race([kind.take(session, name, {}).then(() => null), new Promise(() => {})]);
      await until(`that nobody holds ${target} (its guard was dropped)`, async () => {
        collect();
        return await kind.isFree(world.client, target);
      });
    }
  }));

function thrown(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("fate-is-told", async (world) => {
  const [queue, draw] = [await world.queue(), drawing(world)];
  for (let round = 0; round < ROUNDS; round += 1) {
    const abort = new AbortController();
    const call = world.client.call<Uint8Array>(queue, "consume", {}, { signal: abort.signal, timeout: "2m" });
    start(call);
    await world.blocked(queue, 1);
    const serves = start(world.client.call(queue, "produce", { item: "served" }));
    await afterAWhile(draw() * 8);
    abort.abort(GIVEN_UP);
    const heard = await call.then(text, (error: unknown) => assert.equal(error, GIVEN_UP));
    const fate = await soon(call.fate);
    await serves;
    assert(fate.ending === "returned" || (fate.ending === "withdrawn" && heard === undefined), fate.ending);
    // What is told is so: the item was taken, or it is still there.
    if (fate.ending === "returned") assert.equal(text(fate.result), "served");
    assert.equal(await world.client.call(queue, "length"), fate.ending === "returned" ? 0n : 1n);
    if (fate.ending === "withdrawn") await world.client.call(queue, "consume");
  }
  const failed = world.client.call("Queue/never-created", "consume");
  start(failed);
  assert.equal((await soon(failed.fate)).ending, "failed");
});

test("wait-without-a-limit", (world) =>
  world.twoSessions(async (rival, ours) => {
    for (const kind of BLOCKING) {
      const [name, target] = [await nameOf(world, kind), `${kind.className}/${await nameOf(world, kind)}`];
      const held = await rivalled(kind, rival, name);
      const waits = start(kind.take(ours, name, {}));
      await world.blocked(target, 1);
      assert.equal((await world.client.blocked(target))[0]?.["deadline"], null);
      await held.release();
      await (await soon(waits))?.release();
    }
  }));

test("session-given-up", async (world) => {
  const draw = drawing(world);
  for (let round = 0; round < 4 * ROUNDS; round += 1) {
    const client = world.otherClient();
    const opens = start(client.session({ timeout: "3002s" }));
    // Timers are too coarse for this race: it is counted in turns of the loop.
    for (let turn = Math.floor(draw() * 8); turn > 0; turn -= 1) await afterAWhile(0);
    if (round % 3 === 0) start(opens.then((session) => session.close()));
    const closed = client.close();
    await opens.catch((error: unknown) => assert(error instanceof Closed)).then((session) => session?.close());
    await closed;
  }
  await until("that no session is open that nobody has", async () => {
    const answer = await fetch(`${world.endpoints[0]}/v1/sessions?limit=1000`);
    const { sessions } = (await answer.json()) as { sessions: { timeout: string }[] };
    return !sessions.some(({ timeout }) => parseDuration(timeout).milliseconds === 3_002_000);
  });
});
