// The wait graph: for each semaphore who owns its permits and who waits, in the order of waking.

import { cancelCall } from "./actions.js";
import { get, path } from "./api.js";
import { h } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { button, mono, object, quiet, section, session, table } from "./parts.js";
import { build } from "./waits.js";

/** Most blocked calls that are looked at, and most objects whose semaphores are. */
const [CALLS_MAX, OBJECTS_MAX] = [1000, 40];
/** Waiters of a semaphore that are listed. */
const SHOWN = 50;

export async function load() {
  const { invocations, more } = await get(`/v1/invocations?limit=${CALLS_MAX}`);
  const names = [...new Set(invocations.map((invocation) => invocation.object))];
  const shown = names.slice(0, OBJECTS_MAX);
  // One that was removed meanwhile has no waiters any more.
  const found = await Promise.all(
    shown.map((name) => get(`${path("objects", ...name.split("/"))}?limit=${CALLS_MAX}`).catch(() => null)),
  );
  return {
    calls: invocations,
    graph: build(invocations, found.filter(Boolean)),
    more: more || names.length > shown.length,
  };
}

export function view(model, data) {
  if (!data) return null;
  const { graph, calls, more } = data;
  return [
    graph.cycles.length > 0 &&
      section(
        "Cycles",
        "each waits for the next, the last for the first",
        h("ul", { class: "cycles" }, graph.cycles.map(cycle)),
      ),
    section(
      "Waits",
      `${count(calls.length)}${more ? " and more" : ""} blocked calls, by semaphore`,
      graph.queues.length === 0 && quiet("Nothing is blocked."),
      h(
        "div",
        { class: "queues" },
        graph.queues.map((queue) => waitCard(queue, graph, model)),
      ),
    ),
  ];
}

function cycle(nodes) {
  return h(
    "li",
    { key: nodes.join(), class: "mono" },
    [...nodes, nodes[0]].map((node, index) => [
      index > 0 && h("span", { class: "arrow", "aria-label": "waits for" }, " → "),
      h("span", { class: "node" }, node),
    ]),
  );
}

function waitCard(queue, graph, model) {
  const hot = graph.inCycle.has(queue.name);
  return h(
    "article",
    { key: queue.name, class: hot ? "queue cycle" : "queue", "aria-label": queue.name },
    h(
      "h3",
      null,
      object(queue.object),
      " ",
      mono(queue.semaphore),
      hot && h("small", { class: "flag" }, "in a cycle"),
      h("small", null, `count ${count(queue.count)}`),
    ),
    queue.owners.length > 0 && h("p", { class: "owners" }, "owned by ", owners(queue.owners, graph)),
    h(
      "ol",
      null,
      queue.waiters.slice(0, SHOWN).map((waiter) => wait(waiter, graph, model)),
    ),
    queue.waiters.length > SHOWN && quiet(`and ${count(queue.waiters.length - SHOWN)} more`),
  );
}

/** Who has the permits; a semaphore may have none that are owned. */
export function owners(list, graph) {
  const shown = list.slice(0, SHOWN).map((owner, index) => {
    const id = /^session (\d+)$/.exec(owner)?.[1];
    return [
      index > 0 && ", ",
      h(
        "span",
        { class: graph?.inCycle.has(owner) ? "mono hot" : "mono" },
        id ? ["session ", session(id)] : owner,
      ),
    ];
  });
  return [shown, list.length > SHOWN && ` and ${count(list.length - SHOWN)} more`];
}

function wait(waiter, graph, model) {
  const hot = graph.inCycle.has(`call ${waiter.invocation}`);
  return h(
    "li",
    { key: waiter.invocation, class: hot ? "hot" : null },
    h(
      "div",
      null,
      mono(waiter.method ?? "?"),
      h("small", null, `call ${waiter.invocation}`),
      waiter.session && h("small", null, "session ", session(waiter.session)),
      h("span", { class: "mono age" }, age(waiter.since, model)),
      waiter.method &&
        button("Cancel", () => cancelCall(waiter, model.poll), {
          "aria-label": `Cancel call ${waiter.invocation}`,
        }),
    ),
  );
}

function age(since, { now }) {
  return since && now ? duration(now - Date.parse(since)) : "";
}

/** Blocked calls as a table. */
export function callTable(calls, model) {
  const columns = [
    ["Call", "n wide"],
    ["Object"],
    ["Method"],
    ["Waits for", "wide"],
    ["Session", "n wide"],
    ["Since", "n"],
    ["Until", "n wide"],
    [""],
  ];
  const rows = calls.map((call) => ({
    key: call.invocation,
    cells: [
      mono(call.invocation),
      object(call.object),
      mono(call.method),
      mono(call.semaphore),
      session(call.session),
      mono(age(call.since, model)),
      mono(call.deadline && clock(call.deadline)),
      button("Cancel", () => cancelCall(call, model.poll), {
        "aria-label": `Cancel call ${call.invocation}`,
      }),
    ],
  }));
  return table("Blocked calls", columns, rows, "Nothing is blocked.");
}
