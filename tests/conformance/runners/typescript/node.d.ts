// What the runner uses of Node, so that the compiler is the only thing to install.

declare const process: {
  readonly argv: string[];
  readonly pid: number;
  readonly stdin: unknown;
  readonly stdout: { write(text: string): void };
  exit(code: number): never;
};

declare module "node:readline" {
  export function createInterface(options: { input: unknown }): AsyncIterable<string>;
}

declare module "node:fs" {
  export function readFileSync(path: URL, encoding: "utf8"): string;
  export function writeFileSync(path: URL, text: string): void;
  export function rmSync(path: URL): void;
}

declare module "node:v8" {
  export function setFlagsFromString(flags: string): void;
}

declare module "node:vm" {
  export function runInNewContext(code: string): unknown;
}

declare module "node:worker_threads" {
  export class Worker {
    constructor(code: string, options: { eval: boolean; workerData: object });
    on(what: "message" | "error", listener: (said: any) => void): void;
  }
}

declare module "node:http" {
  interface Request {
    readonly url: string;
    readonly socket: { destroy(): void };
  }
  interface Response {
    writeHead(status: number, headers: object): void;
    end(body: string): void;
  }
  interface Server {
    listen(port: number, host: string, listening: () => void): void;
    address(): { port: number };
    close(): void;
  }
  export function createServer(serve: (request: Request, response: Response) => void): Server;
}

declare module "node:net" {
  interface Server {
    listen(port: number, host: string, listening: () => void): void;
    address(): { port: number };
    close(closed: () => void): void;
  }
  export function createServer(): Server;
}

declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): asserts value;
    equal(found: unknown, wanted: unknown): void;
    deepEqual(found: unknown, wanted: unknown): void;
    throws(work: () => unknown, error?: RegExp): void;
  };
  export default assert;
}

declare module "node:test" {
  export default function test(name: string, work: () => void | Promise<void>): void;
}
