// The standard classes that one would otherwise wrap by hand: thin, typed, in the words of the classes.
//
// Each is a handle to an object by its name; the object needs no handle to exist. What a handle takes belongs to
// a guard (`guards.ts`). What is not here is called by its name: `session.call("Latch/ready", "count_down")`.

import { call, type CallOptions } from "./call.js";
import type { Caller, Session } from "./client.js";
import { now } from "./clock.js";
import { ClassError } from "./errors.js";
import { acquire, type Grant, type Way } from "./grants.js";
import { Held, Leased, type Guard } from "./guards.js";
import type { Arguments } from "./interface.js";
import { Duration, milliseconds, type Span, type Time } from "./values.js";

/** How a call that may wait is made. */
export interface Waiting {
  /** How long to wait at most; without it, as long as it takes. */
  timeout?: Span;
  /** Gives it up. */
  signal?: AbortSignal;
}

/** A method that says by itself when the time is up gets a little longer. */
const LONGER = 15_000;

/** A named object, and what it is called through. */
abstract class Handle {
  readonly target: string;

  constructor(
    protected readonly caller: Caller,
    className: string,
    readonly name: string,
  ) {
    this.target = `${className}/${name}`;
  }

  protected invoke<T>(method: string, given: Arguments = {}, options: CallOptions = {}): Promise<T> {
    return this.caller.call<T>(this.target, method, given, options);
  }

  /** Calls one method, or with a timeout another, which takes a duration and returns null in the end. */
  protected await<T>(endless: string, timed: string, given: Arguments, waiting: Waiting): Promise<T> {
    const signal = waiting.signal === undefined ? {} : { signal: waiting.signal };
    if (waiting.timeout === undefined) return this.invoke<T>(endless, given, { timeout: null, ...signal });
    const time = milliseconds(waiting.timeout);
    const duration = Duration.ofMilliseconds(time);
    return this.invoke<T>(timed, { ...given, duration }, { timeout: time + LONGER, ...signal });
  }

  protected make(given: Arguments): Promise<void> {
    return this.caller.create(this.target, given);
  }
}

/** `Queue`: bounded, first in first out. An item is gone once it is taken. */
export class Queue extends Handle {
  constructor(caller: Caller, name: string) {
    super(caller, "Queue", name);
  }

  create(capacity: number): Promise<void> {
    return this.make({ capacity });
  }

  /** Appends an item; with a timeout, tells whether there was room in time. */
  async put(item: Uint8Array | string, waiting: Waiting = {}): Promise<boolean> {
    return (await this.await<boolean | null>("produce", "produce_for", { item }, waiting)) !== false;
  }

  /** Takes the oldest item; with a timeout, nothing if there was none in time. */
  get(waiting: Waiting & { timeout: Span }): Promise<Uint8Array | null>;
  get(waiting?: { signal?: AbortSignal }): Promise<Uint8Array>;
  get(waiting: Waiting = {}): Promise<Uint8Array | null> {
    return this.await("consume", "consume_for", {}, waiting);
  }

  length(): Promise<bigint> {
    return this.invoke("length");
  }
}

/** `Counter`: a number that many change at once. */
export class Counter extends Handle {
  constructor(caller: Caller, name: string) {
    super(caller, "Counter", name);
  }

  get(): Promise<bigint> {
    return this.invoke("get");
  }

  /** Adds, and returns the new count. */
  add(number: bigint | number = 1): Promise<bigint> {
    return this.invoke("add", { number });
  }

  /** Sets it to 0, and returns what it was. */
  reset(): Promise<bigint> {
    return this.invoke("reset");
  }
}

/** `Barrier`: parties wait for each other, again and again. */
export class Barrier extends Handle {
  constructor(caller: Caller, name: string) {
    super(caller, "Barrier", name);
  }

  create(parties: number): Promise<void> {
    return this.make({ parties });
  }

  /** Blocks until all parties wait, and returns their generation; with a timeout, nothing if they were not
   * there in time. */
  wait(waiting: Waiting = {}): Promise<bigint | null> {
    return this.await("wait", "wait_for", {}, waiting);
  }
}

type Means = Omit<Way<bigint>, "target">;

/** A handle to something that a session can hold. What it takes belongs to a guard from then on; a call that is
 * given up while it takes leaves nothing behind. */
abstract class Holding extends Handle {
  constructor(
    protected readonly session: Session,
    className: string,
    name: string,
  ) {
    super(session, className, name);
  }

  /** The same as `held.release()`. */
  release(held: Guard): Promise<void> {
    return held.release();
  }

  protected take(way: Means, waiting: Waiting): Promise<Held | null> {
    const { core, session } = this.session.place;
    const timeout = waiting.timeout === undefined ? undefined : milliseconds(waiting.timeout);
    const all = { ...way, target: this.target };
    const guard = (token: bigint, grant: Grant): Held => new Held(this.session, grant, token);
    return acquire(core, session, all, { timeout, signal: waiting.signal }, guard);
  }
}

/** A wait that has a limit, and so may end with nothing. */
export type Limited = Waiting & { timeout: Span };
/** A wait that has none. */
export type Unlimited = { signal?: AbortSignal };

/** The session and owner that hold a lock. */
export interface Holder {
  readonly token: bigint;
  readonly session: bigint;
  readonly owner: bigint;
  readonly holds: number;
  readonly since: Time;
}

/** `Lock`: one holder, fair, fenced. Each handle is an owner of its own, and one that has the lock gets it
 * again, as often as it is given back. */
export class Lock extends Holding {
  private readonly owner: bigint;

  constructor(session: Session, name: string) {
    super(session, "Lock", name);
    this.owner = session.newOwner();
  }

  /** Takes the lock; with a timeout, nothing if it was not free in time. */
  acquire(waiting: Limited): Promise<Held | null>;
  acquire(waiting?: Unlimited): Promise<Held>;
  acquire(waiting: Waiting = {}): Promise<Held | null> {
    const { owner } = this;
    const way: Means = {
      endless: ["lock", { owner }],
      timed: (time: number) => ["lock_for", { owner, duration: Duration.ofMilliseconds(time) }],
      atOnce: ["try_lock", { owner }],
      back: (token: bigint) => ["unlock", { token }],
    };
    return this.take(way, waiting);
  }

  /** Takes the lock if it is free. */
  tryAcquire(): Promise<Held | null> {
    return this.acquire({ timeout: 0 });
  }

  /** Does something while the lock is held. */
  async with<T>(work: (held: Held) => Promise<T>, options: Unlimited = {}): Promise<T> {
    const held = await this.acquire(options);
    return held.within(work);
  }

  /** The session and owner that hold it. */
  holder(): Promise<Holder | null> {
    return this.invoke("holder");
  }
}

/** `RwLock`: many readers or one writer, fair, fenced. */
export class RwLock extends Holding {
  private readonly owner: bigint;

  constructor(session: Session, name: string) {
    super(session, "RwLock", name);
    this.owner = session.newOwner();
  }

  /** Takes it for reading; with a timeout, nothing if that was not possible in time. */
  read(waiting: Limited): Promise<Held | null>;
  read(waiting?: Unlimited): Promise<Held>;
  read(waiting: Waiting = {}): Promise<Held | null> {
    return this.takeBy("read_lock", waiting);
  }

  /** Takes it for writing; with a timeout, nothing if that was not possible in time. */
  write(waiting: Limited): Promise<Held | null>;
  write(waiting?: Unlimited): Promise<Held>;
  write(waiting: Waiting = {}): Promise<Held | null> {
    return this.takeBy("write_lock", waiting);
  }

  private takeBy(method: string, waiting: Waiting): Promise<Held | null> {
    const { owner } = this;
    const way: Means = {
      endless: [method, { owner }],
      timed: (time: number) => [`${method}_for`, { owner, duration: Duration.ofMilliseconds(time) }],
      atOnce: [`try_${method}`, { owner }],
      back: (token: bigint) => ["unlock", { token }],
    };
    return this.take(way, waiting);
  }
}

/** `Semaphore`: permits that the session holds, fair. */
export class Semaphore extends Holding {
  constructor(session: Session, name: string) {
    super(session, "Semaphore", name);
  }

  create(permits: number): Promise<void> {
    return this.make({ permits });
  }

  /** Takes permits, whose guard gives all of them back; with a timeout, nothing if they were not free in time. */
  acquire(permits: number, waiting: Limited): Promise<Held | null>;
  acquire(permits?: number, waiting?: Unlimited): Promise<Held>;
  acquire(permits = 1, waiting: Waiting = {}): Promise<Held | null> {
    const way: Means = {
      endless: ["acquire", { permits }],
      timed: (time: number) => ["acquire_for", { permits, duration: Duration.ofMilliseconds(time) }],
      atOnce: ["try_acquire", { permits }],
      back: (grant: bigint) => ["release", { grant }],
    };
    return this.take(way, waiting);
  }

  available(): Promise<bigint> {
    return this.invoke("available");
  }
}

/** `Election`: one candidate leads at a time, fenced. */
export class Election extends Holding {
  constructor(session: Session, name: string) {
    super(session, "Election", name);
  }

  /** Blocks until this session leads; with a timeout, nothing if it did not in time. The guard resigns. */
  campaign(candidate: Uint8Array | string, waiting: Limited): Promise<Held | null>;
  campaign(candidate: Uint8Array | string, waiting?: Unlimited): Promise<Held>;
  campaign(candidate: Uint8Array | string, waiting: Waiting = {}): Promise<Held | null> {
    const way: Means = {
      endless: ["campaign", { candidate }],
      atOnce: ["try_campaign", { candidate }],
      back: (token: bigint) => ["resign", { token }],
      isShared: true,
    };
    return this.take(way, waiting);
  }

  /** The same as `held.release()`. */
  resign(held: Held): Promise<void> {
    return held.release();
  }

  leader(): Promise<{ token: bigint; candidate: Uint8Array; session: bigint; since: Time } | null> {
    return this.invoke("leader");
  }
}

/** Longer than anybody waits, nanoseconds. */
const ALWAYS = 100n * 365n * 86_400_000_000_000n;

/** `Membership`: who is there, with what each says of itself. */
export class Membership extends Holding {
  constructor(session: Session, name: string) {
    super(session, "Membership", name);
  }

  /** The session is a member from now on, until its guard is released. While another session has the name:
   * `ClassError` with `NameTaken`, or with a timeout it waits, and returns nothing if that session was not over in
   * time; null to wait as long as it takes. */
  join(name: string, metadata: Uint8Array | string, waiting: Limited): Promise<Held | null>;
  join(name: string, metadata?: Uint8Array | string, waiting?: { timeout?: null; signal?: AbortSignal }): Promise<Held>;
  join(
    name: string,
    metadata: Uint8Array | string = "",
    waiting: { timeout?: Span | null; signal?: AbortSignal } = {},
  ): Promise<Held | null> {
    const said = { name, metadata };
    const way: Means = {
      endless: ["join_for", { ...said, duration: new Duration(ALWAYS) }],
      timed: (time: number) => ["join_for", { ...said, duration: Duration.ofMilliseconds(time) }],
      atOnce: ["join", said],
      back: (token: bigint) => ["leave", { name, token }],
      isShared: true,
    };
    const { timeout = 0, ...rest } = waiting;
    return this.take(way, timeout === null ? rest : { timeout, ...rest });
  }

  /** The member says something else of itself; returns the version of the change. */
  async update(held: Held, name: string, metadata: Uint8Array | string): Promise<bigint> {
    held.check();
    return await this.invoke<bigint>("update", { name, token: held.token, metadata });
  }
}

/** What a lease is renewed and given back with. */
type Granted = { token: bigint; key?: bigint };

/** `Lease`: something that one holder has for a time, of a session or of nobody. */
export class Lease extends Handle {
  constructor(caller: Caller, name: string) {
    super(caller, "Lease", name);
  }

  /** Takes the lease for that long; with a timeout, nothing if it was not free in time. */
  acquire(holder: Uint8Array | string, duration: Span, waiting: Limited): Promise<Leased | null>;
  acquire(holder: Uint8Array | string, duration: Span, waiting?: Unlimited): Promise<Leased>;
  async acquire(holder: Uint8Array | string, duration: Span, waiting: Waiting = {}): Promise<Leased | null> {
    const time = milliseconds(duration);
    const said = { holder, duration: Duration.ofMilliseconds(time) };
    const way: Way<Granted> = {
      target: this.target,
      endless: ["acquire", said],
      timed: (patience: number) => ["acquire_for", { ...said, patience: Duration.ofMilliseconds(patience) }],
      atOnce: ["try_acquire", said],
      back: ({ key, token }) => ["release", { key, token }],
      lasts: time,
    };
    const { core, session } = this.caller.place;
    const until = waiting.timeout === undefined ? undefined : now() + milliseconds(waiting.timeout);
    const renewal = ({ key, token }: Granted, duration: Duration): Promise<unknown> =>
      call(core, this.target, "renew", { key, token, duration }, {}, session, { fits: true }).result;
    const guard = (granted: Granted, grant: Grant): Leased =>
      new Leased((duration) => renewal(granted, duration), grant, granted.token);
    for (;;) {
      const timeout = until === undefined ? undefined : Math.max(0, until - now());
      const leased = await acquire(core, session, way, { timeout, signal: waiting.signal }, guard);
      if (leased === null) return null;
      try {
        // Only a renewal tells from when it lasts: nobody knows how long the grant was on its way.
        await leased.renew(duration);
        waiting.signal?.throwIfAborted();
        return leased;
      } catch (error) {
        void core.attend(leased.undo());
        // One that has run out on the way is asked for again.
        if (!(error instanceof ClassError)) throw error;
      }
    }
  }

  holder(): Promise<{ token: bigint; holder: Uint8Array; since: Time; ends: Time } | null> {
    return this.invoke("holder");
  }
}
