// What all cases use: the world of a case, and the line to whoever runs the cases.

import { createInterface } from "node:readline";
import { createServer } from "node:net";
import { Client, GesmasError, type CallOptions, type Session, type SessionOptions } from "gesmas";

export const PATIENCE = 60_000;

type Work = (world: World) => Promise<void>;
export const CASES = new Map<string, Work>();

/** A case, by its name in the list. */
export function test(name: string, work: Work): void {
  CASES.set(name, work);
}

/** The line to whoever runs the cases. One question at a time. */
export class Line {
  private readonly lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  private last: Promise<unknown> = Promise.resolve();

  say(what: object): void {
    process.stdout.write(`${JSON.stringify(what)}\n`);
  }

  async listen(): Promise<any> {
    const line = await this.lines.next();
    return line.done === true ? undefined : JSON.parse(line.value);
  }

  ask(what: string, more: object = {}): Promise<any> {
    const asked = this.last.then(async () => {
      this.say({ ask: what, ...more });
      return (await this.listen()).answer;
    });
    this.last = asked;
    return asked;
  }
}

/** What a case has: a client of all replicas, and names of its own. */
export class World {
  readonly client: Client;
  private readonly clients: Client[] = [];

  constructor(
    readonly endpoints: string[],
    readonly line: Line,
    readonly name: string,
  ) {
    this.client = this.otherClient();
  }

  otherClient(endpoints: string[] = this.endpoints, options: CallOptions = {}): Client {
    const client = new Client(endpoints, options);
    this.clients.push(client);
    return client;
  }

  object(className: string): string {
    return `${className}/${this.name}`;
  }

  async echo(mark = 7): Promise<string> {
    await this.client.create(this.object("Echo"), { mark });
    return this.object("Echo");
  }

  async queue(capacity = 16): Promise<string> {
    await this.client.create(this.object("Queue"), { capacity });
    return this.object("Queue");
  }

  session(options: SessionOptions, work: (session: Session) => Promise<void>, client = this.client): Promise<void> {
    return client.withSession(work, options);
  }

  /** Two sessions, which are closed at the end. */
  twoSessions(work: (first: Session, second: Session) => Promise<void>): Promise<void> {
    return this.session({}, (first) => this.session({}, (second) => work(first, second)));
  }

  /** Waits until so many calls are blocked in an object. */
  blocked(target: string, count: number): Promise<void> {
    const look = async (): Promise<boolean> => (await this.client.blocked(target)).length === count;
    return until(`${count} blocked calls in ${target}`, look);
  }

  async close(): Promise<void> {
    for (const client of this.clients) await client.close();
  }
}

/** Looks again and again until it is so. */
export async function until(what: string, look: () => Promise<boolean> | boolean): Promise<void> {
  const end = performance.now() + PATIENCE;
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`${what} did not come to be`);
    // Others get their turn, timers too.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** The result of something that ends by itself, within the bound. */
export async function soon<T>(work: Promise<T>, patience = PATIENCE): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${patience} ms`)), patience);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error of exactly this kind that something ends with. */
export async function fails<E extends GesmasError>(kind: new (...all: any[]) => E, work: Promise<unknown>): Promise<E> {
  let result: unknown;
  try {
    result = await soon(work);
  } catch (error) {
    if (error instanceof GesmasError && error.constructor === kind) return error as E;
    throw error;
  }
  throw new Error(`${kind.name} was expected, and there is a result: ${String(result)}`);
}

/** Something that goes on meanwhile, whose failure is looked at later. */
export function start<T>(work: Promise<T>): Promise<T> {
  work.catch(() => "whoever awaits it is told");
  return work;
}

/** An address that nobody listens on. */
export async function deadEndpoint(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise<void>((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

export function bytes(...all: number[]): Uint8Array {
  return Uint8Array.from(all);
}

export function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : new TextDecoder().decode(bytes);
}
