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
