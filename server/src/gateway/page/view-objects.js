// Objects: a list by class and name, and one with its state, semaphores, timers and faults.
//
// Invariant: a search looks at a bounded number of objects at each poll, and says where it stopped.

import { dropFault, retryFault } from "./actions.js";
import { get, path } from "./api.js";
import { h } from "./dom.js";
import { NOTHING, bytes, clock, count, json } from "./format.js";
import { button, klass, mono, object, quiet, section, table } from "./parts.js";
import { callForm } from "./view-call.js";
import { callTable, owners } from "./view-waits.js";

const [PAGE, ENTRIES, SESSIONS] = [50, 200, 200];
/** Objects that a search by name looks at: so many lists of the greatest length. */
const [LISTS, LIST] = [5, 1000];

export function load({ parts, query }) {
  return parts.length === 2 ? loadOne(...parts) : loadList(query);
}

async function loadOne(className, name) {
  const [shown, detail, sessions, calls] = await Promise.all([
    get(`${path("objects", className, name)}?limit=${ENTRIES}`).catch((problem) => {
      // Not there (yet): its class can still be called.
      if (problem.code === "object-unknown") return null;
      throw problem;
    }),
    get(path("classes", className)),
    get(`/v1/sessions?limit=${SESSIONS}`),
    get(`/v1/invocations?class=${encodeURIComponent(className)}&object=${encodeURIComponent(name)}`),
  ]);
  return { shown, detail, sessions: sessions.sessions, calls };
}

async function loadList(query) {
  const wanted = (query.get("name") ?? "").toLowerCase();
  const base = query.get("class") ? path("objects", query.get("class")) : "/v1/objects";
  const classes = get("/v1/classes");
  let [after, rows, more] = [query.get("after"), [], true];
  for (let list = 0; more && rows.length <= PAGE && list < (wanted ? LISTS : 1); list += 1) {
    const from = after ? `&after=${encodeURIComponent(after)}` : "";
    const page = await get(`${base}?limit=${wanted ? LIST : PAGE}${from}`);
    rows.push(...page.objects.filter((row) => row.object.split("/")[1].toLowerCase().includes(wanted)));
    [after, more] = [page.objects.at(-1)?.object ?? after, page.more];
  }
  // The next page begins after the last row that is shown, or where the search stopped.
  if (rows.length > PAGE) [rows, more, after] = [rows.slice(0, PAGE), true, rows[PAGE - 1].object];
  return { rows, next: more ? after : null, classes: (await classes).classes };
}

export function view(model, data, route) {
  if (!data) return null;
  return route.parts.length === 2 ? one(model, data, route.parts.join("/")) : list(data, route.query);
}

function list({ rows, next, classes }, query) {
  const columns = [["Object"], ["Waiting", "n"], ["State", "n"], ["Incarnation", "n wide"]];
  const cells = rows.map((row) => ({
    key: row.object,
    mark: row.waiting === "0" ? null : "waits",
    cells: [
      object(row.object),
      mono(count(row.waiting)),
      mono(bytes(row.bytes)),
      mono(count(row.incarnation)),
    ],
  }));
  return section(
    "Objects",
    null,
    filter(classes, query),
    table(
      "Objects",
      columns,
      cells,
      next ? "None among those that were looked at." : "No object is like that.",
    ),
    h(
      "p",
      { class: "pages" },
      query.get("after") && h("a", { href: link(query, { after: null }) }, "First page"),
      " ",
      next &&
        h(
          "a",
          { href: link(query, { after: next }), rel: "next" },
          rows.length === 0 ? "Search on" : "Next page",
        ),
    ),
  );
}

/** The address of the list with some of what it is filtered by changed. */
function link(query, changes) {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) changed.set(name, value);
    else changed.delete(name);
  }
  return changed.size === 0 ? "#/objects" : `#/objects?${changed}`;
}

function filter(classes, query) {
  const go = (changes) => location.replace(link(query, { after: null, ...changes }));
  const chosen = query.get("class") ?? "";
  const option = (name) =>
    h("option", { key: name, value: name, selected: name === chosen }, name || "all classes");
  return h(
    "div",
    { class: "filter", role: "search" },
    h(
      "label",
      null,
      "Class",
      h(
        "select",
        { id: "filter-class", onchange: (event) => go({ class: event.target.value }) },
        ["", ...classes.map((row) => row.class)].map(option),
      ),
    ),
    h(
      "label",
      null,
      "Name",
      h("input", {
        id: "filter-name",
        type: "search",
        value: query.get("name") ?? "",
        placeholder: "contains",
        oninput: (event) => go({ name: event.target.value }),
      }),
    ),
  );
}

/** The form stays the same element whether the object is there or not, with what is typed into it. */
function one(model, { shown, detail, sessions, calls }, name) {
  return h(
    "div",
    { class: "columns", key: name },
    h("div", { class: "stack" }, shown ? parts(model, shown, { detail, calls, name }) : absent(name)),
    callForm(model, { detail, sessions, object: name.split("/")[1] }),
  );
}

function absent(name) {
  const how = "A call makes it if its class needs no arguments for that; init makes it with arguments.";
  return section(name, null, quiet(`This object is not there. ${how}`));
}

function parts(model, shown, { detail, calls, name }) {
  const facts = `, ${bytes(shown.bytes)}, incarnation ${count(shown.incarnation)}`;
  return [
    section(
      name,
      ["of ", klass(name.split("/")[0]), facts],
      semaphores(shown.semaphores, detail.fields),
      entries(shown),
    ),
    calls.invocations.length > 0 && section("Blocked calls", null, callTable(calls.invocations, model)),
    shown.timers.length > 0 && section("Timers and watches", null, timers(shown.timers)),
    shown.faults.length > 0 && section("Faults", "of its handlers, oldest first", faults(shown.faults, model)),
  ];
}

function timers(list) {
  const rows = list.map((timer) => ({
    key: timer.timer,
    cells: [mono(timer.timer), mono(timer.handler), mono(timer.when)],
  }));
  return table("Timers and watches", [["Alarm", "n"], ["Handler"], ["Goes off"]], rows, "");
}

function faults(list, model) {
  const act = (word, act, fault) =>
    button(word, () => act(fault, model.poll), { "aria-label": `${word} fault ${fault.fault}` });
  return h(
    "ul",
    { class: "faults", "aria-label": "Faults" },
    list.map((fault) =>
      h(
        "li",
        { key: fault.fault, class: "failed" },
        act("Drop", dropFault, fault),
        act("Retry", retryFault, fault),
        mono(fault.fault),
        " ",
        mono(fault.handler),
        " ",
        mono(fault.arguments === null ? "" : json(fault.arguments)),
        h("small", null, ` ${clock(fault.at)}`),
        h("p", { class: "result" }, fault.error),
      ),
    ),
  );
}

/** A semaphore without permits and waiters is not kept by the kernel; its field says that it is there. */
function semaphores(kept, fields) {
  const idle = fields
    .filter(({ name, kind }) => kind === "semaphore" && !kept.some(({ path }) => path === name))
    .map(({ name }) => ({ path: name, count: "0", owners: [], waiters: [] }));
  const rows = [...kept, ...idle].map((semaphore) => ({
    key: semaphore.path,
    mark: semaphore.waiters.length > 0 ? "waits" : null,
    cells: [
      mono(semaphore.path),
      mono(count(semaphore.count)),
      semaphore.owners.length === 0 ? NOTHING : owners(semaphore.owners),
      mono(semaphore.waiters.length === 0 ? null : semaphore.waiters.slice(0, PAGE).join(", ")),
    ],
  }));
  return table(
    "Semaphores",
    [["Semaphore"], ["Count", "n"], ["Owners"], ["Waiters, in order"]],
    rows,
    "It has no semaphores.",
  );
}

function entries({ entries, more }) {
  const rows = entries.map((entry) => ({
    key: entry.path,
    cells: [mono(entry.path), mono(json(entry.value), { class: "mono value" })],
  }));
  return [
    table("State", [["Entry"], ["Value"]], rows, "Its store is empty."),
    more && quiet(`Only the first ${ENTRIES} are shown.`),
  ];
}
