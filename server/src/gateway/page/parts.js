// Pieces that several views are made of.
//
// Invariant: every name of an object, class or session is a link to where more is said about it.

import { h } from "./dom.js";
import { NOTHING } from "./format.js";

/** A number or other text in the font of numbers. */
export function mono(text, attributes) {
  return h("span", { class: "mono", ...attributes }, text ?? NOTHING);
}

/** A part of the page with a heading. */
export function section(title, note, ...children) {
  return h(
    "section",
    { key: title, "aria-label": title },
    h("h2", null, title, note && h("small", null, note)),
    children,
  );
}

export function quiet(text) {
  return h("p", { class: "quiet" }, text);
}

/** Terms with what they stand for. */
export function terms(rows) {
  return h(
    "dl",
    null,
    rows.map(([term, ...meaning]) => h("div", { key: term }, h("dt", null, term), h("dd", null, meaning))),
  );
}

/**
 * A table. Columns are `[heading, classes]`: `n` for numbers, `wide` for what narrow screens do
 * without. Rows are `{ key, cells, mark }`.
 */
export function table(label, columns, rows, empty) {
  if (rows.length === 0) return quiet(empty);
  const heads = columns.map(([title, kind]) => h("th", { scope: "col", class: kind ?? null }, title));
  const body = rows.map(({ key, cells, mark }) =>
    h(
      "tr",
      { key, class: mark ?? null },
      cells.map((cell, index) => h("td", { class: columns[index][1] ?? null }, cell)),
    ),
  );
  return h(
    "div",
    { class: "scroll" },
    h("table", { "aria-label": label }, h("thead", null, h("tr", null, heads)), h("tbody", null, body)),
  );
}

export function button(text, press, attributes) {
  return h("button", { type: "button", onclick: press, ...attributes }, text);
}

/** A link to an object, `Class/name`. */
export function object(name) {
  return h("a", { class: "mono", href: objectLink(name) }, name);
}

export function objectLink(name) {
  return `#/objects/${name.split("/").map(encodeURIComponent).join("/")}`;
}

export function klass(name) {
  return h("a", { class: "mono", href: `#/classes/${encodeURIComponent(name)}` }, name);
}

export function session(id) {
  return id ? h("a", { class: "mono", href: `#/sessions/${id}` }, id) : NOTHING;
}

/** Why something could not be shown. */
export function trouble(problem) {
  return h(
    "p",
    { class: "trouble" },
    h("b", null, problem.code ?? problem.name),
    " ",
    problem.detail ?? problem.message,
    problem.id && [" ", h("span", { class: "mono" }, `id ${problem.id}`)],
    problem.advice && h("span", { class: "quiet" }, ` ${problem.advice}`),
  );
}
