// The overview: the cluster as this replica sees it, rates, the longest waits, the last errors.

import { get } from "./api.js";
import { sparkline } from "./chart.js";
import { h } from "./dom.js";
import { bytes, count, decimal, seconds, short } from "./format.js";
import { behind, hasMajority, reached } from "./members.js";
import { mono, section, terms } from "./parts.js";
import { errorTable } from "./view-errors.js";
import { callTable } from "./view-waits.js";

/** Rows of each list of the overview. */
const ROWS = 8;

export async function load() {
  const [calls, errors] = await Promise.all([get(`/v1/invocations?limit=${ROWS}`), get("/v1/errors")]);
  return { calls, errors: errors.errors };
}

export function view(model, data) {
  return [
    h("div", { class: "columns", key: "columns" }, members(model), rates(model.history)),
    data &&
      section(
        "Blocked longest",
        null,
        callTable(data.calls.invocations, model),
        data.calls.more && h("p", null, h("a", { href: "#/waits" }, "All that wait")),
      ),
    data && section("Last errors", "answered by this replica", errorTable(data.errors.slice(0, ROWS))),
  ];
}

function members({ cluster, history }) {
  if (!cluster) return section("Cluster", null);
  const leader = hasMajority(cluster) ? cluster.leader : null;
  const here = reached(cluster);
  const roles = (member) => [
    member === cluster.replica && "this one",
    member === leader && "leader",
    !here.includes(member) && "not connected",
  ];
  const replicas = cluster.members.map((member) => {
    return h(
      "li",
      { key: member, class: here.includes(member) ? "there" : "gone" },
      mono(member),
      " ",
      h("small", null, roles(member).filter(Boolean).join(", ")),
    );
  });
  return section(
    "Cluster",
    null,
    h("ul", { class: "members", "aria-label": "Replicas" }, replicas),
    terms([
      ["Leader", mono(leader)],
      ["Ballot", mono(cluster.ballot)],
      ["Step", mono(count(cluster.step))],
      ["Behind", mono(`${count(behind(cluster))} entries`)],
      ["State hash", mono(short(cluster.state_hash), { title: cluster.state_hash })],
      ["Last stamp", mono(`${cluster.now.slice(11, 19)} UTC`, { title: cluster.now })],
      ["Newest snapshot", mono(bytes(history.latest("gesmas_snapshot_bytes") ?? 0))],
      ["Clients", mono(count(history.latest("gesmas_connections")))],
      ["Cluster", mono(short(cluster.cluster.replace(/^0+/, "")), { title: cluster.cluster })],
      ["Server", mono(cluster.server)],
    ]),
  );
}

function rates(history) {
  const rate = (title, name) => {
    const points = history.rate(name);
    return tile(title, decimal(points.at(-1)?.value), "/s", points);
  };
  const times = history.roundTrips();
  const calls = history.callTimes(0.5);
  const [median, slow] = [0.5, 0.99].map((quantile) => history.recentCallTime(quantile));
  return section(
    "Now",
    "and the last five minutes",
    h(
      "ul",
      { class: "tiles", "aria-label": "Rates" },
      rate("Calls", "gesmas_invocations_total"),
      rate("Resumptions", "gesmas_resumptions_total"),
      rate("Reads", "gesmas_reads_total"),
      tile(
        "Blocked",
        count(history.latest("gesmas_blocked_now")),
        "calls",
        history.gauge("gesmas_blocked_now"),
      ),
      rate("Refusals", "gesmas_refusals_total"),
      rate("Log syncs", "gesmas_log_syncs_total"),
      tile("This page's reads", seconds(times.at(-1)?.value), "round trip", times),
      tile("HTTP calls", seconds(median), `median; 99 %: ${seconds(slow)}`, calls),
    ),
  );
}

function tile(title, number, unit, points) {
  return h(
    "li",
    { key: title },
    h("span", { class: "name" }, title),
    h("span", { class: "number mono" }, number, " ", h("small", null, unit)),
    sparkline(points, `${title}, last five minutes`),
  );
}
