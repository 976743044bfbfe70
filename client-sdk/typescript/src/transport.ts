// Requests and answers, by `fetch`, and the clock that sessions are judged by.
//
// Invariants: nothing waits without a bound; a failure says whether the server may have got the request.
// Not here: what is sent again (`core.ts`).

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

const started = { steady: performance.now(), wall: Date.now() };

/** Milliseconds since the program started. The steady clock stands still while some machines sleep; so the
 * wall clock counts too when it has gone further. */
export function now(): number {
  return Math.max(performance.now() - started.steady, Date.now() - started.wall);
}

/** Ends after some time, or when a signal says so. */
export function pause(milliseconds: number, ...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, milliseconds));
    for (const signal of signals) {
      if (signal.aborted) return end();
      signal.addEventListener("abort", end);
    }
  });
}

/** Aborts when the time is up or any of these signals is; `done` lets go of all of them. */
export class Bound {
  private readonly controller = new AbortController();
  private readonly timer: ReturnType<typeof setTimeout>;
  private readonly end = (): void => this.controller.abort();

  constructor(
    until: number,
    private readonly signals: readonly AbortSignal[],
  ) {
    this.timer = setTimeout(this.end, Math.max(1, until - now()));
    for (const signal of signals) {
      if (signal.aborted) this.end();
      signal.addEventListener("abort", this.end);
    }
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  done(): void {
    clearTimeout(this.timer);
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
