// Whatever is asked for, through whichever endpoint answers.
//
// What may be sent again is sent again until its deadline: reads, whatever is the same when it is done
// twice, and updates, each under a key of its own. A server is asked for an answer within `SLICE`, and the
// next request with the same key waits on, so that a replica that has gone silent is noticed.
// Not here: what a call does (`call.ts`), what is kept alive (`session.ts`) and heard (`events.ts`).

import { now } from "./clock.js";
import { ArgumentError, Closed, GesmasError, Unreachable, ofProblem, type Problem } from "./errors.js";
import { Interface, type Arguments, type Method } from "./interface.js";
import type { Json } from "./types.js";
import { Disconnected, Endpoint, pause, type Answer, type Request } from "./transport.js";

/** After how long a server is asked to answer, so that it is known to live; milliseconds. */
export const SLICE = 5_000;
/** After how long without an answer another endpoint is tried. */
const SILENCE = 7_500;
/** How long after its deadline a call waits for word of what became of it. */
export const GRACE = 5_000;
/** How long after a deadline the server's own word on it may take. */
export const LATE = 1_000;
const PAUSE_FIRST = 20;
const PAUSE_LONGEST = 1_000;
/** How long closing waits for what is withdrawn and given back. */
const CLOSING = 6_000;
/** Outcomes that one call has forgotten, and that wait for that; others expire in the cluster. */
const FORGET_MAX = 50;
const FORGET_KEPT = 1_000;

/** What is known of the attempts at one thing. */
export interface Trace {
  /** It may be under way or have taken effect, as of before the last answer. */
  sent: boolean;
  /** A server may have got it and may act on it only later: its answer was not heard. */
  lost: boolean;
}

/** How attempts are made. */
export interface Patience {
  /** How long one attempt may take. */
  attempt?: number;
  /** How long after the end an attempt may last. */
  grace?: number;
  trace?: Trace;
  signal?: AbortSignal | undefined;
  /** Whether it is to be done although the client is being closed. */
  despiteClosing?: boolean;
  /** Which answers do not count. */
  againIf?: (answer: Answer) => boolean;
}

/** See the head of the file. */
export class Core {
  private readonly endpoints: Endpoint[];
  private current: number;
  private readonly interfaces = new Map<string, Promise<Interface>>();
  private readonly closing = new AbortController();
  private readonly underWay = new Set<Promise<unknown>>();
  private forgettable: string[] = [];

  constructor(addresses: readonly string[]) {
    if (addresses.length === 0) throw new ArgumentError("endpoints", "a client needs at least one endpoint");
    this.endpoints = addresses.map((address) => new Endpoint(address));
    // Clients with the same list do not all begin at the same replica.
    this.current = Math.floor(Math.random() * addresses.length);
  }

  at(): Endpoint {
    return this.endpoints[this.current] as Endpoint;
  }

  /** Aborted when the client is closed. */
  get closed(): AbortSignal {
    return this.closing.signal;
  }

  /** The next request goes elsewhere, unless another request has turned already. */
  turnFrom(endpoint: Endpoint): void {
    if (this.at() === endpoint) this.current = (this.current + 1) % this.endpoints.length;
  }

  /** Waits, when the client is closed, for something to end. */
  attend<T>(work: Promise<T>): Promise<T> {
    this.underWay.add(work);
    const done = (): void => void this.underWay.delete(work);
    work.then(done, done);
    return work;
  }

  async close(): Promise<void> {
    this.closing.abort();
    const done = new AbortController();
    const all = Promise.allSettled([...this.underWay]).then(() => done.abort());
    await Promise.race([all, pause(CLOSING, done.signal)]);
  }

  /** An outcome that nobody will ask for again; the next call has it forgotten. */
  doneWith(outcome: string): void {
    if (this.forgettable.length < FORGET_KEPT) this.forgettable.push(outcome);
  }

  /** Outcomes to forget, and from now on not to mention again. */
  outcomes(): string {
    return this.forgettable.splice(0, FORGET_MAX).join(",");
  }

  /** Sends a request that may be sent again, until it has an answer that counts; throws `Unreachable` when
   * the time is up. */
  async attempts(requestAt: (start: number) => Request, until: number, patience: Patience = {}): Promise<Answer> {
    const trace = patience.trace ?? { sent: false, lost: false };
    const signals = patience.despiteClosing === true ? [] : [this.closed];
    if (patience.signal !== undefined) signals.push(patience.signal);
    let [wait, failures, last] = [PAUSE_FIRST, 0, "no endpoint answered"];
    for (;;) {
      patience.signal?.throwIfAborted();
      if (signals.some((signal) => signal.aborted)) throw new Closed("closed", "the client was closed");
      const [endpoint, start] = [this.at(), now()];
      if (start >= until) throw new Unreachable("unreachable", `no replica served the request in time: ${last}`);
      const end = Math.min(until + (patience.grace ?? 0), start + (patience.attempt ?? SILENCE));
      try {
        const answer = await endpoint.exchange(requestAt(start), end, signals);
        trace.sent ||= answer.status === 202;
        if (patience.againIf?.(answer) === true) continue;
        if (answer.status !== 503 && !isUnknown(answer)) return answer;
        // 503: nothing took effect.
        trace.sent ||= answer.status !== 503;
        last = problemOf(answer).detail;
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        trace.sent ||= error.sent;
        trace.lost ||= error.sent;
        last = error.message;
      }
      if (signals.some((signal) => signal.aborted)) continue;
      this.turnFrom(endpoint);
      failures += 1;
      if (failures % this.endpoints.length === 0) {
        await pause(Math.min(wait * (0.5 + Math.random()), Math.max(0, until - now())), ...signals);
        wait = Math.min(2 * wait, PAUSE_LONGEST);
      }
    }
  }

  /** Something that may be done twice, with an answer that is no failure. */
  async ask(method: string, path: string, timeout: number, body?: string | Uint8Array, patience: Patience = {}): Promise<Answer> {
    const request: Request = body === undefined ? { method, path } : { method, path, body };
    return checked(await this.attempts(() => request, now() + timeout, patience));
  }

  interface(className: string, timeout: number): Promise<Interface> {
    const known = this.interfaces.get(className);
    if (known !== undefined) return known;
    const path = `/v1/classes/${encodeURIComponent(className)}`;
    const asked = this.ask("GET", path, timeout).then((answer) => new Interface(JSON.parse(answer.body)));
    this.interfaces.set(className, asked);
    asked.catch(() => this.forgetInterface(className));
    return asked;
  }

  /** What is known of a class is out of date. */
  forgetInterface(className: string): void {
    this.interfaces.delete(className);
  }

  async create(target: string, given: Arguments, timeout: number): Promise<void> {
    const method = (await this.interface(split(target)[0], timeout)).method("init");
    await this.ask("PUT", pathOf(target), timeout, method.body(given));
  }
}

/** Class and name of `Class/name`. */
export function split(target: string): [string, string] {
  const slash = target.indexOf("/");
  if (slash <= 0 || slash === target.length - 1) {
    throw new ArgumentError("name", `an object is named as Class/name, not ${JSON.stringify(target)}`);
  }
  return [target.slice(0, slash), target.slice(slash + 1)];
}

export function pathOf(target: string): string {
  const [className, name] = split(target);
  return `/v1/objects/${encodeURIComponent(className)}/${encodeURIComponent(name)}`;
}

function parsed(answer: Answer): Problem {
  try {
    const body: unknown = JSON.parse(answer.body);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}

/** The error that an answer stands for. */
export function problemOf(answer: Answer, method?: Method): GesmasError {
  const problem = parsed(answer);
  const raw = problem.error as Json | undefined;
  const error = raw === undefined || method === undefined ? raw : method.errorOf(raw);
  return ofProblem(answer.status, problem, error);
}

export function checked(answer: Answer): Answer {
  if (answer.status >= 300) throw problemOf(answer);
  return answer;
}

function isUnknown(answer: Answer): boolean {
  return answer.status === 504 && parsed(answer).type?.endsWith(":unknown") === true;
}
