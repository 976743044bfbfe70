// The failures that this replica's gateway has answered lately.

import { get } from "./api.js";
import { h } from "./dom.js";
import { clock, count } from "./format.js";
import { mono, section, table } from "./parts.js";

export async function load() {
  return (await get("/v1/errors")).errors;
}

export function view(model, errors) {
  return (
    errors &&
    section("Errors", "answered by this replica since it started; at most 100 are kept", errorTable(errors))
  );
}

/** Errors, newest first. */
export function errorTable(errors) {
  const columns = [
    ["Time", "n"],
    ["Error"],
    ["Request", "wide"],
    ["Id in the log", "whole wide"],
    ["Times", "n wide"],
  ];
  const rows = errors.map((error) => ({
    key: error.number,
    cells: [
      mono(clock(error.time), { title: error.time }),
      [
        h("b", { class: "code" }, error.code),
        " ",
        error.detail,
        error.advice && h("small", null, ` ${error.advice}`),
        h(
          "small",
          { class: "narrow mono" },
          ` ${error.method} ${error.path}${error.id ? ` id ${error.id}` : ""}`,
        ),
      ],
      [mono(`${error.method} ${error.path}`), h("small", null, ` ${error.status}`)],
      mono(error.id),
      mono(count(error.count)),
    ],
  }));
  return table("Errors", columns, rows, "None yet.");
}
