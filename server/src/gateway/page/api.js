// Requests to the replica that serves this page, and to nobody else.
//
// Invariants: every request ends, by an answer, by its time, or by whoever asked; what failed is a
// `Problem` with a word, a sentence, and an id if the server's log has more.
// Not here: when to ask again (app.js).

/** How long a question may take, milliseconds. Calls of methods have deadlines of their own. */
const PATIENCE = 5000;

/** An answer that is no success, or none at all. */
export class Problem extends Error {
  constructor(code, detail, { status = 0, id = null, advice = null, error = null } = {}) {
    super(detail);
    Object.assign(this, { code, detail, status, id, advice, error });
  }
}

async function problemOf(response) {
  try {
    const body = await response.json();
    return new Problem(body.type.replace("urn:gesmas:", ""), body.detail, {
      ...body,
      error: body.error ?? null,
    });
  } catch {
    return new Problem("malformed", `an answer with status ${response.status} is no problem document`);
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (cause) {
    if (cause.name === "TimeoutError") throw new Problem("timeout", "the replica took too long to answer");
    if (cause.name === "AbortError") throw new Problem("hung-up", "cancelled from this page");
    throw new Problem("unreachable", "the replica does not answer");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** Asks for what this replica has, also where it hears no majority: the page says where it stands. */
function look(path) {
  const headers = { "Gesmas-Consistency": "stale" };
  return ask(path, { headers, signal: AbortSignal.timeout(PATIENCE) });
}

/** Asks for JSON. */
export async function get(path) {
  return (await look(path)).json();
}

/** Asks for JSON, and for the time by the replica's clock, in milliseconds. */
export async function dated(path) {
  const answer = await look(path);
  return { body: await answer.json(), date: Date.parse(answer.headers.get("Date")) };
}

/** Asks for a text. */
export async function text(path) {
  return (await look(path)).text();
}

/** Sends JSON, or nothing, and gives what came back: JSON, or `null`. */
export async function send(
  method,
  path,
  body,
  { headers = {}, signal = AbortSignal.timeout(PATIENCE) } = {},
) {
  const options = { method, headers, signal };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json", ...headers };
  }
  const answer = await (await ask(path, options)).text();
  return answer === "" ? null : JSON.parse(answer);
}

/** A path of the API with each part escaped. */
export function path(...parts) {
  return `/v1/${parts.map(encodeURIComponent).join("/")}`;
}
