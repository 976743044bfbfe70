// Calling a method: a form made of the class's interface, and what became of the calls.
//
// A call is sent without a key, so that hanging up cancels it: that is what its button does. Each
// takes one of the few connections that a browser opens to a server, so only some run at a time, and
// polls always find another.
// Invariants: what was typed stays through polls; a session that this page opened is kept alive for
// as long as the page is there.

import { Problem, path, send } from "./api.js";
import { h } from "./dom.js";
import { prose, seconds } from "./format.js";
import { button, mono, section, trouble } from "./parts.js";
import { field, signature, value } from "./types.js";

/** Calls that run at a time, and outcomes that stay. */
const [RUNNING_MAX, KEPT] = [3, 12];
/** Browsers let pages that nobody looks at do something once a minute. */
const [TIMEOUT, ALIVE_AFTER] = ["150s", 30_000];

const runs = [];
/** Sessions of this page, with when each was last heard of. */
const own = new Map();
let numbers = 0;
/** The method that is chosen, by class. */
const chosen = new Map();

export const isOwn = (session) => own.has(session);

/** Shows that this page lives, for its sessions. */
export async function keepAlive() {
  for (const [session, heard] of own) {
    if (Date.now() - heard < ALIVE_AFTER) continue;
    own.set(session, Date.now());
    await send("POST", path("sessions", session, "keep-alive")).catch((problem) => {
      if (problem.code === "session-unknown") own.delete(session);
    });
  }
}

/** The form for a class, whose object may be given. */
export function callForm(model, { detail, sessions, object }) {
  const methods = detail.methods.filter(({ kind }) => ["update", "read", "init"].includes(kind));
  const name =
    chosen.get(detail.class) ?? methods.find(({ kind }) => kind !== "init")?.name ?? methods[0]?.name;
  const method = methods.find((found) => found.name === name);
  const place = `${detail.class}/${object ?? ""}`;
  if (!method) return null;
  const choose = (event) => {
    chosen.set(detail.class, event.target.value);
    model.draw();
  };
  const submit = (event) => {
    event.preventDefault();
    begin(model, detail, method, event.target);
  };
  return section(
    "Call a method",
    null,
    h(
      "form",
      { key: place, class: "call", onsubmit: submit, "aria-label": "Call a method" },
      objectField(object),
      labelled("Method", methodChoice(methods, name, choose), null),
      h("p", { class: "docs" }, mono(signature(method)), method.docs && ` ${prose(method.docs)}`),
      method.parameters.map((parameter) => argument(method, parameter, detail.types)),
      method.kind !== "init" && how(sessions),
      h(
        "div",
        { class: "buttons" },
        h("button", { class: "main" }, method.kind === "init" ? "Create" : "Call"),
      ),
    ),
    h(
      "ul",
      { class: "runs", "aria-live": "polite", "aria-label": "Calls from this page" },
      runs.map((run) => outcome(model, run)),
    ),
  );
}

function labelled(title, input, hint) {
  return h("label", { key: title }, h("span", null, title, hint && h("small", null, ` ${hint}`)), input);
}

function objectField(object) {
  if (object !== null) return h("input", { type: "hidden", name: "object", value: object });
  const input = h("input", { name: "object", required: true, autocomplete: "off", spellcheck: "false" });
  return labelled("Object", input, "its name");
}

function methodChoice(methods, name, choose) {
  const option = (found) =>
    h("option", { key: found.name, value: found.name, selected: found.name === name }, found.name);
  return h("select", { name: "method", onchange: choose }, methods.map(option));
}

/** On whose behalf, and how long. */
function how(sessions) {
  const deadline = h("input", { name: "deadline", value: "30s", autocomplete: "off" });
  return h(
    "div",
    { class: "pair", key: "how" },
    labelled("Session", sessionChoice(sessions), null),
    labelled("Deadline", deadline, null),
  );
}

function argument(method, { name, type }, types) {
  const { kind, hint, choices, optional, numeric } = field(type, types);
  const attributes = {
    name: `argument ${name}`,
    required: !optional && (numeric || kind === "lines"),
    autocomplete: "off",
    spellcheck: "false",
  };
  const input = {
    select: () =>
      h(
        "select",
        attributes,
        choices.map((choice) => h("option", { key: choice, value: choice }, choice || "none")),
      ),
    lines: () => h("textarea", { ...attributes, rows: "2" }),
    line: () => h("input", { ...attributes, inputmode: numeric ? "numeric" : null }),
  }[kind]();
  return h(
    "label",
    { key: `${method.name} ${name}` },
    h("span", null, mono(name), h("small", null, ` ${hint}`)),
    input,
  );
}

function sessionChoice(sessions) {
  const others = sessions.filter(({ session }) => !own.has(session));
  return h(
    "select",
    { name: "session" },
    h("option", { key: "none", value: "" }, "none"),
    h("option", { key: "new", value: "new" }, "a new one of this page"),
    [...own.keys()].map((id) => h("option", { key: id, value: id }, `${id} (this page)`)),
    others.map(({ session: id, principal }) =>
      h("option", { key: id, value: id }, `${id} ${principal.replace(/^client:/, "")}`),
    ),
  );
}

/** Starts what the form says. */
async function begin(model, detail, method, form) {
  const typed = new FormData(form);
  const object = typed.get("object").trim();
  const run = {
    number: (numbers += 1),
    title: `${detail.class}/${object} ${method.name}`,
    started: Date.now(),
    hangUp: new AbortController(),
  };
  runs.unshift(run);
  while (runs.length > KEPT && !runs.at(-1).hangUp) runs.pop();
  try {
    if (runs.filter((other) => other.hangUp).length > RUNNING_MAX) {
      throw new Problem("too-many", `${RUNNING_MAX} calls of this page are running; cancel one, or wait`);
    }
    const headers = await headersOf(model, typed, form);
    const body = argumentsOf(method, typed);
    model.draw();
    const create = method.kind === "init";
    const where = create
      ? path("objects", detail.class, object)
      : path("objects", detail.class, object, method.name);
    const answer = await send(create ? "PUT" : "POST", where, body, { headers, signal: run.hangUp.signal });
    run.result = create ? "it is there" : JSON.stringify(answer.result);
  } catch (problem) {
    run.problem = problem;
  }
  run.hangUp = null;
  run.took = Date.now() - run.started;
  model.draw();
  model.poll();
}

/** On whose behalf and how long, as headers. A new session stays chosen for the next call. */
async function headersOf(model, typed, form) {
  const headers = {};
  if (typed.get("deadline")) headers["Gesmas-Deadline"] = typed.get("deadline").trim();
  let session = typed.get("session");
  if (session === "new") {
    session = (await send("POST", "/v1/sessions", { timeout: TIMEOUT })).session;
    own.set(session, Date.now());
    // Drawn first: only what is there can be chosen.
    model.draw();
    form.elements.session.value = session;
  }
  if (session) headers["Gesmas-Session"] = session;
  return headers;
}

function argumentsOf(method, typed) {
  const body = {};
  for (const { name, type } of method.parameters) {
    try {
      body[name] = value(type, typed.get(`argument ${name}`));
    } catch (error) {
      throw new Problem("argument", `${name}: ${error.message}`);
    }
  }
  return body;
}

/** What became of a call. */
function outcome(model, run) {
  const state = run.hangUp ? "running" : run.problem ? "failed" : "done";
  return h(
    "li",
    { key: String(run.number), class: state },
    h(
      "div",
      null,
      mono(run.title),
      h(
        "small",
        // Not read out each time it grows.
        { "aria-hidden": "true" },
        ` ${run.hangUp ? "runs for" : "took"} ${seconds((run.took ?? Date.now() - run.started) / 1000)}`,
      ),
      run.hangUp && button("Cancel", () => run.hangUp.abort(), { "aria-label": `Cancel ${run.title}` }),
    ),
    run.result !== undefined && h("p", { class: "mono result" }, run.result),
    run.problem && outcomeTrouble(run.problem),
  );
}

function outcomeTrouble(problem) {
  return [
    trouble(problem),
    problem.error !== null &&
      problem.error !== undefined &&
      h("p", { class: "mono result" }, JSON.stringify(problem.error)),
  ];
}
