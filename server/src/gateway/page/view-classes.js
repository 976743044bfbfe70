// Classes, and one of them: its documentation, its state's layout, its methods. And sessions, which
// are a list alike.

import { closeSession } from "./actions.js";
import { get, path } from "./api.js";
import { h } from "./dom.js";
import { bytes, count, prose, short } from "./format.js";
import { button, klass, mono, section, session, table } from "./parts.js";
import { describe, signature } from "./types.js";
import { callForm, isOwn } from "./view-call.js";
import { callTable } from "./view-waits.js";

const SESSIONS = 200;

/** All classes, or one with the sessions that its calls could be made in. */
export async function load({ parts: [name] }) {
  const [{ classes }, detail, sessions] = await Promise.all([
    get("/v1/classes"),
    name ? get(path("classes", name)) : null,
    name ? get(`/v1/sessions?limit=${SESSIONS}`) : null,
  ]);
  return { classes, detail, sessions: sessions?.sessions ?? [] };
}

export function view(model, data, { parts: [name] }) {
  if (!data) return null;
  if (name) return one(model, data, name);
  const rows = data.classes.map((row) => ({
    key: row.class,
    mark: row.state === "ready" ? null : "pale",
    cells: [
      klass(row.class),
      row.state.replaceAll("-", " "),
      h("a", { href: `#/objects?class=${encodeURIComponent(row.class)}`, class: "mono" }, count(row.objects)),
      mono(bytes(row.bytes)),
      mono(short(row.code), { title: row.code }),
    ],
  }));
  const columns = [["Class"], ["State"], ["Objects", "n"], ["Module", "n"], ["Code", "wide"]];
  return section("Classes", null, table("Classes", columns, rows, "No class is there."));
}

function one(model, { detail, sessions, classes }, name) {
  const row = classes.find((found) => found.class === name);
  const facts = [
    detail.transient && "transient",
    row?.state.replaceAll("-", " "),
    row && `${count(row.objects)} ${row.objects === "1" ? "object" : "objects"}`,
  ];
  return [
    section(name, facts.filter(Boolean).join(", "), h("p", { class: "docs" }, prose(detail.docs))),
    callForm(model, { detail, sessions, object: null }),
    section(
      "Methods",
      null,
      h(
        "div",
        { class: "methods" },
        detail.methods.map((method) => methodCard(method, detail.types)),
      ),
    ),
    section(
      "State",
      null,
      table(
        "Fields",
        [["Field"], ["Kind", "whole"], ["Key"], ["Value"]],
        detail.fields.map((field) => ({
          key: field.name,
          cells: [
            mono(field.name),
            field.kind,
            mono(field.key),
            mono(field.value && describe(field.value, detail.types)),
          ],
        })),
        "Its objects have no state.",
      ),
    ),
  ];
}

function methodCard(method, types) {
  const marks = [method.kind, method.detached && "detached"].filter(Boolean).join(", ");
  return h(
    "article",
    { key: method.name },
    h("h3", null, mono(signature(method)), h("small", null, marks)),
    method.docs && h("p", { class: "docs" }, prose(method.docs)),
    method.error && h("p", { class: "quiet" }, "error: ", mono(describe(method.error, types))),
  );
}

/** Sessions, or one with its blocked calls. */
export async function loadSessions({ parts: [id] }) {
  if (!id) return get(`/v1/sessions?limit=${SESSIONS}`);
  const [found, calls] = await Promise.all([
    get(path("sessions", id)),
    get(`/v1/invocations?session=${encodeURIComponent(id)}`),
  ]);
  return { sessions: [found], more: false, calls: calls.invocations };
}

export function viewSessions(model, data, { parts: [id] }) {
  if (!data) return null;
  const columns = [
    ["Session", "n"],
    ["Client"],
    ["Timeout", "n wide"],
    ["Permits", "n"],
    ["Calls", "n"],
    ["Kept replies", "n wide"],
    ["Events", "n wide"],
    ["Last request", "n wide"],
    [""],
  ];
  const rows = data.sessions.map((row) => ({
    key: row.session,
    cells: [
      session(row.session),
      [mono(row.principal.replace(/^client:/, "")), isOwn(row.session) && h("small", null, " this page")],
      mono(row.timeout),
      mono(count(row.permits)),
      mono(count(row.open_requests)),
      mono(count(row.stored_replies)),
      mono(count(row.events)),
      mono(count(row.last_admitted)),
      button("Close", () => closeSession(row, model.poll), { "aria-label": `Close session ${row.session}` }),
    ],
  }));
  const title = id ? `Session ${id}` : "Sessions";
  return [
    section(
      title,
      data.more ? `the first ${SESSIONS}` : null,
      table("Sessions", columns, rows, "No session is open."),
    ),
    data.calls && section("Blocked calls", "on its behalf", callTable(data.calls, model)),
  ];
}
