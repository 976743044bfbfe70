// The standard classes that one would otherwise wrap by hand: thin, typed, in the words of the classes.
//
// Each is a handle to an object by its name; the object needs no handle to exist. Whatever holds something
// needs a session. What is not here is called by its name: `session.call("Latch/ready", "count_down")`.

import type { CallOptions } from "./call.js";
import type { Caller, Session } from "./client.js";
import { ClassError, SessionOver } from "./errors.js";
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
    private readonly caller: Caller,
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

/** Something that a session holds under a fencing token.
 *
 * Whoever works under it watches `lost`, stops when it aborts, and hands `token` to whatever it works on, which
 * refuses smaller tokens than it has seen. */
export class Held {
  /** Aborted when it is, or may be, lost. */
  readonly lost: AbortSignal;

  /** @internal */
  constructor(
    readonly session: Session,
    readonly token: bigint,
  ) {
    this.lost = session.lost;
  }

  /** Whether it is, or may be, lost: by the clock, now. */
  get isLost(): boolean {
    return this.session.isLost;
  }
}

/** Who holds a lock. */
export interface Holder {
  readonly token: bigint;
  readonly session: bigint;
  readonly owner: bigint;
  readonly holds: number;
  readonly since: Time;
}

/** `Lock`: one holder, fair, fenced. Each handle is an owner of its own, and one that has the lock gets it
 * again. */
export class Lock extends Handle {
  private readonly owner: bigint;

  constructor(
    private readonly session: Session,
    name: string,
  ) {
    super(session, "Lock", name);
    this.owner = session.newOwner();
  }

  /** Takes the lock; with a timeout, nothing if it was not free in time. */
  acquire(waiting: Waiting & { timeout: Span }): Promise<Held | null>;
  acquire(waiting?: { signal?: AbortSignal }): Promise<Held>;
  async acquire(waiting: Waiting = {}): Promise<Held | null> {
    const token = await this.await<bigint | null>("lock", "lock_for", { owner: this.owner }, waiting);
    return token === null ? null : new Held(this.session, token);
  }

  /** Takes the lock if it is free. */
  async tryAcquire(): Promise<Held | null> {
    const token = await this.invoke<bigint | null>("try_lock", { owner: this.owner });
    return token === null ? null : new Held(this.session, token);
  }

  /** Gives the lock back; `ClassError` with `NotHeld` if it is not held any more. */
  release(held: Held): Promise<void> {
    return this.invoke("unlock", { token: held.token });
  }

  /** Does something while the lock is held. */
  async with<T>(work: (held: Held) => Promise<T>, options: { signal?: AbortSignal } = {}): Promise<T> {
    const held = await this.acquire(options);
    let result: T;
    try {
      result = await work(held);
    } catch (error) {
      // What went wrong is not hidden by a lock that is lost: a session that is over has given it back.
      await this.release(held).catch((failure: unknown) => {
        if (!(failure instanceof ClassError || failure instanceof SessionOver)) throw failure;
      });
      throw error;
    }
    await this.release(held);
    return result;
  }

  /** Who holds it. */
  holder(): Promise<Holder | null> {
    return this.invoke("holder");
  }
}

/** `Semaphore`: permits that the session holds, fair. */
export class Semaphore extends Handle {
  constructor(session: Session, name: string) {
    super(session, "Semaphore", name);
  }

  create(permits: number): Promise<void> {
    return this.make({ permits });
  }

  /** Takes permits and returns the grant that gives them back; with a timeout, nothing if they were not free
   * in time. */
  acquire(permits: number, waiting: Waiting & { timeout: Span }): Promise<bigint | null>;
  acquire(permits?: number, waiting?: { signal?: AbortSignal }): Promise<bigint>;
  acquire(permits = 1, waiting: Waiting = {}): Promise<bigint | null> {
    return this.await("acquire", "acquire_for", { permits }, waiting);
  }

  release(grant: bigint): Promise<void> {
    return this.invoke("release", { grant });
  }

  available(): Promise<bigint> {
    return this.invoke("available");
  }
}

/** `Election`: one candidate leads at a time, fenced. */
export class Election extends Handle {
  constructor(
    private readonly session: Session,
    name: string,
  ) {
    super(session, "Election", name);
  }

  /** Blocks until this session leads. */
  async campaign(candidate: Uint8Array | string, options: { signal?: AbortSignal } = {}): Promise<Held> {
    const token = await this.invoke<bigint>("campaign", { candidate }, { timeout: null, ...options });
    return new Held(this.session, token);
  }

  resign(held: Held): Promise<void> {
    return this.invoke("resign", { token: held.token });
  }

  leader(): Promise<{ token: bigint; candidate: Uint8Array; session: bigint; since: Time } | null> {
    return this.invoke("leader");
  }
}
