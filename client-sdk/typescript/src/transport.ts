// Requests and answers, by `fetch`, and what waits.
//
// Invariants: nothing waits without a bound; a failure says whether the server may have got the request.
// Not here: what is sent again (`core.ts`).

import { now } from "./clock.js";

/** A connection failed. `sent` says whether the server may have got the request. */
export class Disconnected extends Error {
  constructor(
    message: string,
    readonly sent: boolean,
  ) {
    super(message);
  }
}

/** A request. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

/** An answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** Failures of connecting, as Node names them; browsers do not tell. */
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

/** Longer times are counted in parts: a timer takes them for nothing. */
const TIMER_LONGEST = 2 ** 31 - 1;
/** Timers stand still while some machines sleep: the clock is looked at this often. */
export const LOOK = 1_000;

/** Calls something after some time, however long; the result prevents it. */
export function after(milliseconds: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const arm = (left: number): void => {
    const part = Math.min(Math.max(0, left), TIMER_LONGEST);
    timer = setTimeout(() => (left > part ? arm(left - part) : work()), part);
  };
  arm(milliseconds);
  return () => clearTimeout(timer);
}

/** Ends after some time, or when a signal says so. */
export function pause(milliseconds: number, ...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      stop();
      for (const signal of signals) signal.removeEventListener("abort", end);
      resolve();
    };
    const stop = after(milliseconds, end);
    for (const signal of signals) {
      if (signal.aborted) return end();
      signal.addEventListener("abort", end);
    }
  });
}

/** Ends at a time by the clock, which counts sleep, or when a signal says so. */
export async function pauseUntil(time: number, ...signals: AbortSignal[]): Promise<void> {
  while (now() < time && !signals.some((signal) => signal.aborted)) {
    await pause(Math.min(LOOK, time - now()), ...signals);
  }
}

/** Aborts when the time is up or any of these signals is; `done` lets go of all of them. */
export class Bound {
  private readonly controller = new AbortController();
  private readonly stop: () => void;
  private readonly end = (): void => this.controller.abort();

  constructor(
    until: number,
    private readonly signals: readonly AbortSignal[],
  ) {
    this.stop = after(Math.max(1, until - now()), this.end);
    for (const signal of signals) {
      if (signal.aborted) this.end();
      signal.addEventListener("abort", this.end);
    }
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  done(): void {
    this.stop();
    for (const signal of this.signals) signal.removeEventListener("abort", this.end);
  }
}

/** One address where the service is reached. */
export class Endpoint {
  readonly address: string;

  constructor(address: string) {
    const url = new URL(address.includes("://") ? address : `http://${address}`);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new RangeError(`an endpoint is an address such as http://127.0.0.1:7180, not ${address}`);
    }
    this.address = url.href.replace(/\/$/, "");
  }

  /** Sends a request and waits for the whole answer. */
  async exchange(request: Request, until: number, signals: readonly AbortSignal[]): Promise<Answer> {
    const bound = new Bound(until, signals);
    try {
      const response = await this.open(request, bound.signal);
      return { status: response.status, headers: response.headers, body: await response.text() };
    } catch (error) {
      throw this.disconnected(error);
    } finally {
      bound.done();
    }
  }

  /** Sends a request whose answer may have no end. */
  async follow(request: Request, signal: AbortSignal): Promise<Response> {
    try {
      return await this.open(request, signal);
    } catch (error) {
      throw this.disconnected(error);
    }
  }

  private open(request: Request, signal: AbortSignal): Promise<Response> {
    const init: RequestInit = { method: request.method, signal, cache: "no-store" };
    if (request.headers !== undefined) init.headers = request.headers;
    if (request.body !== undefined) init.body = request.body as BodyInit;
    return fetch(this.address + request.path, init);
  }

  private disconnected(error: unknown): Disconnected {
    const cause = error instanceof Error ? (error.cause as { code?: string; message?: string } | undefined) : undefined;
    const sent = !NOT_SENT.includes(cause?.code ?? "");
    return new Disconnected(`${this.address}: ${cause?.message || cause?.code || String(error)}`, sent);
  }
}
