// Runs the cases of the list with the TypeScript client.
//
// `run.js typescript ENDPOINTS [CASE]`; with `peer` for a case, it makes the calls that it is handed. What it says
// and asks for on its output, whoever runs it answers on its input.

import "./calls.js";
import "./failures.js";
import "./holding.js";
import "./sessions.js";
import "./standard.js";
import "./workers.js";
import { Client } from "gesmas";
import { CASES, Line, PATIENCE, World, soon } from "./support.js";

async function peer(endpoints: string[], line: Line): Promise<void> {
  const client = new Client(endpoints);
  for (let call = await line.listen(); call !== undefined; call = await line.listen()) {
    const result = await client.call(call.target, call.method, call.arguments);
    const hex = (byte: number): string => byte.toString(16).padStart(2, "0");
    line.say({ answer: result instanceof Uint8Array ? Array.from(result, hex).join("") : result });
  }
}

async function run(endpoints: string[], line: Line, only: string | undefined): Promise<void> {
  for (const [name, work] of CASES) {
    if (only !== undefined && only !== name) continue;
    const world = new World(endpoints, line, name);
    try {
      await soon(work(world), 1.5 * PATIENCE);
      line.say({ case: name, passed: true });
    } catch (error) {
      line.say({ case: name, passed: false, why: error instanceof Error ? error.stack : String(error) });
    } finally {
      await world.close();
    }
  }
  line.say({ done: true });
}

const [, , , endpoints = "", only] = process.argv;
await (only === "peer" ? peer : run)(endpoints.split(","), new Line(), only);
process.exit(0);
