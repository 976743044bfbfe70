// Guards: what a caller has of something that is held.
//
// A guard gives back what it stands for when it is released, at the end of an `await using`, or when nobody has
// it any more, which is when the engine collects it and says so on the console.
// Invariant: a guard says that it is lost before somebody else can have what it stands for, by the clock, now.

import type { Session } from "./client.js";
import { now, safeUntil } from "./clock.js";
import { ClassError, NotHeld, SessionOver } from "./errors.js";
import type { Grant } from "./grants.js";
import { Duration, milliseconds, type Span } from "./values.js";

// Where it is not there, what is compiled from `await using` looks for the same.
(Symbol as { asyncDispose?: symbol }).asyncDispose ??= Symbol.for("Symbol.asyncDispose");

/** Something that is held under a fencing token, until its guard is released.
 *
 * What works under it looks at `isLost`, stops when it is, and hands `token` to what it works on, which refuses
 * smaller tokens than it has seen. */
export abstract class Guard {
  /** @internal */
  constructor(
    protected readonly grant: Grant,
    readonly token: bigint,
  ) {}

  /** Whether it is given back, or is, or may be, lost: by the clock, now. */
  get isLost(): boolean {
    return this.grant.isLeft || this.mayBeOver();
  }

  /** Throws if it is. */
  check(): void {
    if (this.grant.isLeft) throw new NotHeld("not-held", "it was given back");
    if (this.mayBeOver()) throw this.why();
  }

  /** Gives it back; again changes nothing. That goes on aside if it fails for want of an answer. `ClassError` or
   * `SessionOver` if it was lost before. */
  release(): Promise<void> {
    return this.grant.giveBack();
  }

  /** The same, at the end of an `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Does something, and gives it back afterwards. @internal */
  async within<T, G extends Guard>(this: G, work: (guard: G) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await work(this);
    } catch (error) {
      // What went wrong is not hidden by what is lost: that has been given back.
      await this.release().catch((failure: unknown) => {
        if (!(failure instanceof ClassError || failure instanceof SessionOver)) throw failure;
      });
      throw error;
    }
    await this.release();
    return result;
  }

  protected abstract mayBeOver(): boolean;
  protected abstract why(): Error;
}

/** The guard of something that a session holds. */
export class Held extends Guard {
  /** Aborted when its session is, or may be, over. */
  readonly lost: AbortSignal;

  /** @internal */
  constructor(
    readonly session: Session,
    grant: Grant,
    token: bigint,
  ) {
    super(grant, token);
    this.lost = session.lost;
  }

  protected mayBeOver(): boolean {
    return this.session.isLost;
  }

  protected why(): Error {
    return new SessionOver("session-unknown", `session ${this.session.id} may be over`);
  }
}

/** The guard of a lease, which lasts for a time and is kept by `renew`, in a session or in none. What it knows of
 * its end is counted from the first sending of the last renewal that was answered. */
export class Leased extends Guard {
  private safeUntil = -Infinity;

  /** @internal */
  constructor(
    private readonly renewal: (duration: Duration) => Promise<unknown>,
    grant: Grant,
    token: bigint,
  ) {
    super(grant, token);
  }

  /** It lasts that long from now; `ClassError` with `NotHeld` if it has run out. */
  async renew(duration: Span): Promise<void> {
    const [sentAt, time] = [now(), milliseconds(duration)];
    await this.renewal(Duration.ofMilliseconds(time));
    this.safeUntil = safeUntil(sentAt, time);
  }

  /** Nobody has it: it was not handed out. @internal */
  async undo(): Promise<void> {
    await this.grant.seeThrough();
  }

  protected mayBeOver(): boolean {
    return now() >= this.safeUntil;
  }

  protected why(): Error {
    return new NotHeld("not-held", "it may have run out");
  }
}
