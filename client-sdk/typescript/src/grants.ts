// Grants: what an object has given to a session, or to the holder of a lease, and takes back.
//
//   acquire ──► call under a key ──► accepted: the caller has a guard, which gives it back
//                     │                       (released, left, collected)
//                     └──► aborted, timed out, closed: withdrawn; what was granted first is given back
//
// This is the one mechanism for whatever can be held; handles only say how something is taken and given back.
// Invariants: what was granted belongs to one guard, or is given back within a round trip of the cluster; a
// giving back that has begun goes on, aside, when the cluster does not answer, until the session is over, whose
// end gives it back too; it is made under one key, and so has an effect once; what a session has once, however
// often it asks for it, is given back with the last of its guards.

import { call, isLate, type Given } from "./call.js";
import { now } from "./clock.js";
import type { Core } from "./core.js";
import { Cancelled, DeadlineExceeded, GesmasError, Unknown, Unreachable } from "./errors.js";
import type { Arguments } from "./interface.js";
import type { SessionCore } from "./session.js";

/** How long a caller waits for the answer to a giving back. */
const PATIENCE = 30_000;
/** How long one aside is asked for, before it is looked whether the session is over. */
const ROUND = 5_000;
/** A method that says by itself when the time is up gets a little longer. */
const LONGER = 15_000;

/** A method and its arguments; those that it has no parameter for are left out. */
export type Asked = readonly [method: string, given: Arguments];

/** How something is taken and given back. */
export interface Way<R> {
  readonly target: string;
  readonly endless: Asked;
  /** Returns nothing when so many milliseconds are up; a method that has none such gets a deadline. */
  readonly timed?: (milliseconds: number) => Asked;
  readonly atOnce?: Asked;
  /** How a result is given back. */
  readonly back: (result: R) => Asked;
  /** A session that asks again is given the same once more, and nothing counts how often. */
  readonly isShared?: boolean;
  /** For how long it is held at most. */
  readonly lasts?: number;
}

/** See the head of the file. */
export class Grant {
  /** It is given back, or that has begun. */
  isLeft = false;
  private isBack = false;
  private readonly back: Asked;
  private readonly target: string;
  private readonly runsOut: number | undefined;
  private share: string | undefined;

  constructor(
    private readonly core: Core,
    private readonly session: SessionCore | undefined,
    way: Way<any>,
    result: unknown,
    private key: string,
  ) {
    this.target = way.target;
    this.back = way.back(result);
    this.key += "-back";
    this.runsOut = way.lasts === undefined ? undefined : now() + way.lasts;
    if (way.isShared === true) {
      this.share = `${way.target} ${String(result)}`;
      session?.share(this.share);
    }
  }

  /** Gives it back, once however often it is asked for. */
  async giveBack(): Promise<void> {
    this.isLeft = true;
    if (this.isBack) return;
    try {
      await this.core.attend(this.ask(PATIENCE));
    } catch (error) {
      if (error instanceof Unreachable || error instanceof Unknown) void this.core.attend(this.seeThrough());
      throw error;
    }
  }

  /** Gives it back, however long that takes. */
  async seeThrough(): Promise<void> {
    this.isLeft = true;
    while (!this.isBack) {
      try {
        await this.ask(ROUND);
      } catch (error) {
        const isCertain = !(error instanceof Unreachable || error instanceof Unknown);
        if (isCertain || this.isOver()) return;
      }
    }
  }

  /** Nobody has it any more. */
  drop(): void {
    if (this.isLeft || this.session?.over.aborted === true) return;
    this.isLeft = true;
    console.warn(`gesmas: a guard of ${this.target} was dropped while it was held: it is given back now`);
    void this.core.attend(this.seeThrough());
  }

  private async ask(timeout: number): Promise<void> {
    if (this.share !== undefined && this.session !== undefined) {
      if (!this.session.unshare(this.share)) {
        this.isBack = true;
        return;
      }
      this.share = undefined;
    }
    const [method, given] = this.back;
    try {
      const how = { key: this.key, settles: false, fits: true };
      await call(this.core, this.target, method, given, { timeout }, this.session, how).result;
      this.isBack = true;
    } catch (error) {
      if (error instanceof DeadlineExceeded || error instanceof Cancelled) {
        // It is certain that this call did nothing; its key is used up.
        this.key += "+";
        throw new Unreachable("unreachable", error.detail);
      }
      this.isBack = !(error instanceof Unreachable || error instanceof Unknown);
      throw error;
    }
  }

  private isOver(): boolean {
    if (this.session !== undefined) return this.session.over.aborted;
    return this.core.closed.aborted || this.runsOut === undefined || now() >= this.runsOut;
  }
}

const dropped = new FinalizationRegistry<Grant>((grant) => grant.drop());

/** The result of one acquisition on its way to its caller. */
class Taking<R, G extends object> implements Given {
  constructor(
    private readonly core: Core,
    private readonly session: SessionCore | undefined,
    private readonly way: Way<R>,
    private readonly guard: (result: R, grant: Grant) => G,
  ) {}

  accept(result: unknown, key: string): G | null {
    if (result === null) return null;
    const grant = this.grantOf(result, key);
    const guard = this.guard(result as R, grant);
    // A promise that nobody looks at any more, which lost a race say, leaves its guard to nobody.
    dropped.register(guard, grant);
    return guard;
  }

  async undo(result: unknown, key: string): Promise<void> {
    if (result !== null) await this.grantOf(result, key).seeThrough();
  }

  private grantOf(result: unknown, key: string): Grant {
    return new Grant(this.core, this.session, this.way, result, key);
  }
}

/** Takes something; with a timeout, nothing if it was not there in time. */
export async function acquire<R, G extends object>(
  core: Core,
  session: SessionCore | undefined,
  way: Way<R>,
  waiting: { timeout?: number | undefined; signal?: AbortSignal | undefined },
  guard: (result: R, grant: Grant) => G,
): Promise<G | null> {
  const { timeout, signal } = waiting;
  let asked = way.endless;
  let time: number | null = null;
  if (timeout !== undefined) {
    if (timeout <= 0 && way.atOnce !== undefined) [asked, time] = [way.atOnce, PATIENCE];
    else if (way.timed !== undefined) [asked, time] = [way.timed(timeout), timeout + LONGER];
    else time = Math.max(1, timeout);
  }
  const began = now();
  const options = { timeout: time, ...(signal === undefined ? {} : { signal }) };
  const given = new Taking(core, session, way, guard);
  try {
    const taken = await call(core, way.target, asked[0], asked[1], options, session, { given, fits: true }).result;
    return taken as G | null;
  } catch (error) {
    const isDeadline = timeout !== undefined && asked === way.endless && now() >= began + timeout;
    if (isDeadline && error instanceof GesmasError && isLate(error)) return null;
    throw error;
  }
}
