// One call: a read, an update under a key, or an update without one.
//
// Invariants: an update without a key is never sent again once a server may have got it; when the
// deadline of one with a key has passed without word, it is withdrawn, which also tells what became of it; a
// call whose caller gives it up is withdrawn; the outcome of a call is forgotten only when no attempt at
// it can still be under way somewhere.

import { GRACE, LATE, SLICE, pathOf, problemOf, split, type Core, type Trace } from "./core.js";
import { Closed, DeadlineExceeded, GesmasError, SessionOver, StillRunning, Unknown, Unreachable } from "./errors.js";
import type { Arguments, Method } from "./interface.js";
import { Disconnected, now, pause, type Answer, type Request } from "./transport.js";
import { milliseconds, type Span } from "./values.js";

/** The deadline of calls that have none; outcomes are kept a little longer, and a day at most. */
const LONGEST = 12 * 3_600_000;
const PAUSE = 20;

/** How calls are made. */
export interface CallOptions {
  /** How long a call may take, "30s" if not said; null for as long as there may be. */
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

/** Calls a method. */
export async function call(
  core: Core,
  target: string,
  name: string,
  given: Arguments,
  options: CallOptions,
  session: string | undefined,
): Promise<unknown> {
  const [className] = split(target);
  const timeout = timeoutOf(options);
  const until = now() + timeout;
  options.signal?.throwIfAborted();
  const method = (await core.interface(className, timeout)).method(name);
  const made = new Call(core, method, target, until, options, session, method.body(given));
  try {
    if (method.reads) return await made.read();
    if (options.idempotent === false && options.key === undefined) return await made.once();
    return await core.attend(made.keyed(options.key ?? crypto.randomUUID()));
  } catch (error) {
    if (error instanceof GesmasError && ["class-mismatch", "method-unknown", "argument"].includes(error.code)) {
      // The class may have been replaced since its interface was asked for.
      core.forgetInterface(className);
    }
    throw error;
  }
}

/** How long a call may take, milliseconds. */
export function timeoutOf(options: CallOptions): number {
  const timeout = options.timeout === undefined ? "30s" : options.timeout;
  return timeout === null ? LONGEST : Math.min(milliseconds(timeout), LONGEST);
}

class Call {
  private readonly path: string;
  private readonly what: string;

  constructor(
    private readonly core: Core,
    private readonly method: Method,
    target: string,
    private readonly until: number,
    private readonly options: CallOptions,
    private readonly session: string | undefined,
    private readonly body: string,
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
      const givenUp = this.options.signal?.aborted === true && error === this.options.signal.reason;
      if ((givenUp || error instanceof Closed) && trace.sent) {
        // A key would let the call run on without its caller, who does not wait for this.
        const withdrawn = this.core.attend(this.withdraw(key, now() + GRACE));
        withdrawn.catch(() => "it ends by its deadline then");
        if (!givenUp) await withdrawn.catch(() => "as above");
      }
      if (error instanceof SessionOver && trace.sent) {
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
      const seconds = Math.min(Math.ceil(slice / 1000), Math.ceil(this.left(start) / 1000) + 1);
      const headers: Record<string, string> = { "idempotency-key": key, prefer: `wait=${seconds}` };
      if (forget !== "") headers["gesmas-forget"] = forget;
      return this.request(this.left(start), headers);
    };
    let answer: Answer;
    try {
      const againIf = ({ status }: Answer): boolean => status === 202 && !isOver();
      answer = await this.core.attempts(request, this.until, { grace: LATE, trace, signal, againIf });
    } catch (error) {
      if (!(error instanceof Unreachable) || !trace.sent) throw error;
      return this.settle(key);
    }
    if (answer.status === 202) {
      if (ends !== undefined && now() < this.until) throw new StillRunning(key);
      return this.settle(key);
    }
    const outcome = answer.headers.get("gesmas-outcome");
    if (outcome !== null && this.options.key === undefined && !trace.lost) this.core.doneWith(outcome);
    return this.result(answer);
  }

  /** The deadline has passed without word: whatever the call does now, it stops, and says what it did. */
  private async settle(key: string): Promise<unknown> {
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

  private request(time: number, more: Record<string, string> = {}): Request {
    const deadline = `${Math.max(1, Math.round(time))}ms`;
    const headers: Record<string, string> = { "content-type": "application/json", "gesmas-deadline": deadline, ...more };
    if (this.session !== undefined) headers["gesmas-session"] = this.session;
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
