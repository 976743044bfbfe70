// Calls: reads, updates under a key, updates without one.
//
// Invariants: an update without a key is never sent again once a server may have got it; when the
// deadline of one with a key has passed without word, it is withdrawn, which also tells what became of it; a
// call whose caller gives it up is withdrawn, and its fate says what became of it; a wait without a limit has none;
// the outcome of a call is forgotten only when no attempt at it can still be under way somewhere.
// Not here: what is done with a result that nobody took (`grants.ts`).

import { now } from "./clock.js";
import { GRACE, LATE, SLICE, pathOf, problemOf, split, type Core, type Trace } from "./core.js";
import {
  Cancelled,
  ClassError,
  Closed,
  DeadlineExceeded,
  GesmasError,
  SessionOver,
  StillRunning,
  Unknown,
  Unreachable,
} from "./errors.js";
import type { Arguments, Method } from "./interface.js";
import type { SessionCore } from "./session.js";
import { Disconnected, pause, type Answer, type Request } from "./transport.js";
import { milliseconds, type Span } from "./values.js";

/** The longest deadline that the cluster is told. A call of a session has none instead of a longer one, since the
 * end of its session ends it. */
const LONGEST = 12 * 3_600_000;
/** A call of nobody and without a limit must not outlive its client by more: it is made again after that time. */
const ROUND = 600_000;
const PAUSE = 20;

/** How calls are made. */
export interface CallOptions {
  /** How long a call may take, "30s" if not said; null for as long as it takes. */
  timeout?: Span | null;
  /** False: updates go without a key, at most once instead of exactly once, and are cancelled by hanging up. */
  idempotent?: boolean;
  /** Reads may be answered from what a replica has, which may be old. */
  stale?: boolean;
  /** The key instead of a random one, for a call that may be made again, by anybody. */
  key?: string;
  /** After how long `StillRunning` is thrown, with the key to wait on with. */
  wait?: Span;
  /** Gives the call up: a call that is blocked is cancelled in the cluster. */
  signal?: AbortSignal;
}

/** What became of a call, also of one whose caller had given it up.
 *
 * `withdrawn`: it did nothing, or it was blocked, and what it had done before it blocked stands. `unknown`: nobody
 * has said it in time; it may have any end, or run on to its deadline or the end of its session. */
export type Fate<T = unknown> =
  | { readonly ending: "returned"; readonly result: T }
  | { readonly ending: "failed"; readonly error: unknown }
  | { readonly ending: "withdrawn" }
  | { readonly ending: "unknown" };

/** The promise of a call's result, and of what became of it, which is never rejected. */
export type Called<T> = Promise<T> & { readonly fate: Promise<Fate<T>> };

/** What a caller is given for the result of a call, and how that is undone if nobody takes it. */
export interface Given {
  accept(result: unknown, key: string): unknown;
  undo(result: unknown, key: string): Promise<void>;
}

/** What only this library does with calls. */
export interface How {
  given?: Given;
  /** A random key that the caller has chosen. */
  key?: string;
  /** False: never withdrawn, since its caller makes it again under the same key. */
  settles?: boolean;
  /** True: arguments that the method has no parameter for are left out. */
  fits?: boolean;
}

/** Calls a method. */
export function call(
  core: Core,
  target: string,
  name: string,
  given: Arguments,
  options: CallOptions,
  session: SessionCore | undefined,
  how: How = {},
): { result: Promise<unknown>; fate: Promise<Fate> } {
  let tell: (fate: Promise<Fate>) => void = () => {};
  const givenUp = new Promise<Fate>((resolve) => (tell = resolve));
  const result = rounds(core, target, name, given, options, session, { ...how, tell });
  const fate = result.then(
    (value): Fate => ({ ending: "returned", result: value }),
    (error: unknown): Fate | Promise<Fate> => (isOpen(error) ? givenUp : fateOf(error)),
  );
  return { result, fate };
}

/** Whether an error leaves open what became of its call. */
function isOpen(error: unknown): boolean {
  return !(error instanceof GesmasError) || error instanceof Closed;
}

function fateOf(error: unknown): Fate {
  if (error instanceof Unknown || error instanceof StillRunning) return { ending: "unknown" };
  if (error instanceof GesmasError && isLate(error)) return { ending: "withdrawn" };
  return { ending: "failed", error };
}

/** Whether a call did nothing, or cleaned up, for want of time. */
export function isLate(error: GesmasError): boolean {
  if (error instanceof ClassError) return error.variant === "Cancelled";
  return error instanceof DeadlineExceeded || error instanceof Cancelled || error instanceof Unreachable;
}

async function rounds(
  core: Core,
  target: string,
  name: string,
  given: Arguments,
  options: CallOptions,
  session: SessionCore | undefined,
  how: How & { tell: (fate: Promise<Fate>) => void },
): Promise<unknown> {
  const [className] = split(target);
  const until = now() + timeoutOf(options);
  for (;;) {
    const end = endOfRound(until, options, session);
    let made: Call | undefined;
    try {
      options.signal?.throwIfAborted();
      const method = (await core.interface(className, end - now())).method(name);
      const body = method.body(how.fits === true ? method.fitting(given) : given);
      made = new Call(core, method, target, end, options, session, body, how);
      if (method.reads) return await made.read();
      if (options.idempotent === false && options.key === undefined) return await made.once();
      return await core.attend(made.keyed(options.key ?? how.key ?? crypto.randomUUID()));
    } catch (error) {
      if (made?.wasMade !== true) how.tell(Promise.resolve({ ending: "withdrawn" }));
      const isKnown = error instanceof GesmasError;
      if (isKnown && ["class-mismatch", "method-unknown", "argument"].includes(error.code)) {
        // The class may have been replaced since its interface was asked for.
        core.forgetInterface(className);
      }
      const isAgain = end < until && now() >= end && options.key === undefined;
      if (!(isAgain && isKnown && isLate(error))) throw error;
    }
  }
}

/** How long a call may take, milliseconds. */
export function timeoutOf(options: CallOptions): number {
  const timeout = options.timeout === undefined ? "30s" : options.timeout;
  return timeout === null ? Infinity : milliseconds(timeout);
}

function endOfRound(until: number, options: CallOptions, session: SessionCore | undefined): number {
  const isKeyed = options.idempotent !== false || options.key !== undefined;
  if (session !== undefined || !isKeyed) return until;
  return Math.min(until, now() + (until === Infinity && options.key === undefined ? ROUND : LONGEST));
}

class Call {
  private readonly path: string;
  private readonly what: string;
  /** Whether the server may have got it. */
  wasMade = false;

  constructor(
    private readonly core: Core,
    private readonly method: Method,
    target: string,
    private readonly until: number,
    private readonly options: CallOptions,
    private readonly session: SessionCore | undefined,
    private readonly body: string,
    private readonly how: How & { tell: (fate: Promise<Fate>) => void },
  ) {
    this.path = `${pathOf(target)}/${encodeURIComponent(method.name)}`;
    this.what = `${method.name} of ${target}`;
  }

  async read(): Promise<unknown> {
    const more: Record<string, string> = this.options.stale === true ? { "gesmas-consistency": "stale" } : {};
    const answer = await this.core.attempts(
      (start) => this.request(Math.min(SLICE, this.left(start)), more),
      this.until,
      // Its own time was up, not that of the call: another replica may know more.
      { grace: LATE, signal: this.options.signal, againIf: ({ status }) => status === 504 && now() < this.until },
    );
    return this.result(answer);
  }

  /** Without a key: at most once, and cancelled by hanging up. */
  async once(): Promise<unknown> {
    this.wasMade = true;
    this.how.tell(Promise.resolve({ ending: "unknown" }));
    const signals = [this.core.closed];
    if (this.options.signal !== undefined) signals.push(this.options.signal);
    for (;;) {
      this.options.signal?.throwIfAborted();
      if (this.core.closed.aborted) throw new Closed("closed", "the client was closed");
      const [endpoint, start] = [this.core.at(), now()];
      let last: string;
      try {
        const answer = await endpoint.exchange(this.request(this.left(start)), this.until + GRACE, signals);
        if (answer.status !== 503) return this.result(answer);
        last = problemOf(answer).detail;
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        this.options.signal?.throwIfAborted();
        if (error.sent) {
          throw new Unknown("unknown", `the connection broke while ${this.what} was under way: ${error.message}`);
        }
        last = error.message;
      }
      this.core.turnFrom(endpoint);
      if (now() >= this.until) {
        throw new Unreachable("unreachable", `no replica took ${this.what} in time: ${last}`);
      }
      await pause(PAUSE, ...signals);
    }
  }

  /** Under a key: exactly once, through whatever replicas. */
  async keyed(key: string): Promise<unknown> {
    const trace: Trace = { sent: false, lost: false };
    try {
      return await this.attempt(key, trace);
    } catch (error) {
      this.wasMade = trace.sent;
      if (error instanceof StillRunning || this.how.settles === false || !trace.sent) throw error;
      if (isOpen(error)) {
        // A key would let the call run on without its caller, who does not wait for this.
        const fate = this.core.attend(this.giveUp(key));
        this.how.tell(fate);
        if (error instanceof Closed) await fate;
      }
      if (error instanceof Unknown && this.how.given !== undefined) {
        // Its caller does not wait longer; what it may still be granted is nobody's.
        void this.core.attend(this.giveUp(key));
      }
      if (error instanceof SessionOver) {
        throw new Unknown("unknown", `the session ended while ${this.what} was under way`);
      }
      throw error;
    }
  }

  private async attempt(key: string, trace: Trace): Promise<unknown> {
    const { wait, signal } = this.options;
    const ends = wait === undefined ? undefined : now() + milliseconds(wait);
    const isOver = (): boolean => now() >= this.until || (ends !== undefined && now() >= ends);
    const forget = this.core.outcomes();
    const request = (start: number): Request => {
      const slice = ends === undefined ? SLICE : Math.min(SLICE, Math.max(0, ends - start));
      // A whole number of seconds that is not shorter: answers come sooner if there are any.
      const seconds = Math.min(Math.ceil(slice / 1000), Math.ceil(Math.min(this.left(start), LONGEST) / 1000) + 1);
      const headers: Record<string, string> = { "idempotency-key": key, prefer: `wait=${seconds}` };
      if (forget !== "") headers["gesmas-forget"] = forget;
      return this.request(this.left(start), headers);
    };
    let answer: Answer;
    try {
      const againIf = ({ status }: Answer): boolean => status === 202 && !isOver();
      const despiteClosing = this.how.settles === false;
      answer = await this.core.attempts(request, this.until, { grace: LATE, trace, signal, againIf, despiteClosing });
    } catch (error) {
      if (!(error instanceof Unreachable) || !trace.sent) throw error;
      return this.accepted(await this.settle(key), key);
    }
    if (answer.status === 202) {
      if (ends !== undefined && now() < this.until) throw new StillRunning(key);
      return this.accepted(await this.settle(key), key);
    }
    const outcome = answer.headers.get("gesmas-outcome");
    if (outcome !== null && this.options.key === undefined && !trace.lost) this.core.doneWith(outcome);
    return this.accepted(this.result(answer), key);
  }

  private accepted(result: unknown, key: string): unknown {
    return this.how.given === undefined ? result : this.how.given.accept(result, key);
  }

  /** The deadline has passed without word: whatever the call does now, it stops, and says what it did. */
  private async settle(key: string): Promise<unknown> {
    if (this.how.settles === false) throw new Unknown("unknown", `nobody has said what became of ${this.what}`);
    let answer: Answer;
    try {
      answer = await this.withdraw(key, now() + GRACE);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      throw new Unknown("unknown", `nobody has said what became of ${this.what}: ${error.detail}`);
    }
    if (answer.status === 409 && problemOf(answer).code === "cancelled") {
      throw new DeadlineExceeded("cancelled", `the time was up for ${this.what}`);
    }
    return this.result(answer);
  }

  private withdraw(key: string, until: number): Promise<Answer> {
    const request = this.request(GRACE, { "idempotency-key": key, "gesmas-cancel": "true" });
    return this.core.attempts(() => request, until, { attempt: GRACE, despiteClosing: true });
  }

  /** Withdraws the call, and undoes what it gave to nobody. */
  private async giveUp(key: string): Promise<Fate> {
    let result: unknown;
    try {
      result = this.result(await this.withdrawAtLast(key));
    } catch (error) {
      return error instanceof Unreachable ? { ending: "unknown" } : fateOf(error);
    }
    await this.how.given?.undo(result, key);
    return { ending: "returned", result };
  }

  /** What might hold something is withdrawn however long that takes: the end of its session is the other end
   * of it. */
  private async withdrawAtLast(key: string): Promise<Answer> {
    for (;;) {
      try {
        return await this.withdraw(key, now() + GRACE);
      } catch (error) {
        const mayHold = this.how.given !== undefined && this.session?.over.aborted === false;
        if (!(error instanceof Unreachable && mayHold)) throw error;
      }
    }
  }

  private request(time: number, more: Record<string, string> = {}): Request {
    const deadline = time > LONGEST ? "none" : `${Math.max(1, Math.round(time))}ms`;
    const headers: Record<string, string> = { "content-type": "application/json", "gesmas-deadline": deadline, ...more };
    if (this.session !== undefined) headers["gesmas-session"] = this.session.id;
    return { method: "POST", path: this.path, headers, body: this.body };
  }

  private left(start: number): number {
    return Math.max(1, this.until - start);
  }

  private result(answer: Answer): unknown {
    if (answer.status === 200) return this.method.resultOf(answer.body);
    throw problemOf(answer, this.method);
  }
}
