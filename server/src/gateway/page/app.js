// The page: which view is shown, when the replica is asked, and what the frame around a view says.
//
// All state is in `model`; each poll brings it up to date and draws everything (dom.js changes what
// differs). Addresses are `#/VIEW/…?…`, so that every view can be linked to.
// Invariants: at most one poll is under way; what a poll brings for a view that was left is dropped;
// what is shown stays when a poll fails, under a banner that says so.
// Why no framework and no build: some hundred lines of own helpers do what this page needs, there is
// nothing to audit or to update, and what is reviewed is what is served.

import { dated, text } from "./api.js";
import { h, patch } from "./dom.js";
import { count, duration } from "./format.js";
import { History, parse } from "./metrics.js";
import { hasMajority, reached } from "./members.js";
import { mono, trouble } from "./parts.js";
import { keepAlive } from "./view-call.js";
import * as classes from "./view-classes.js";
import * as cluster from "./view-cluster.js";
import * as errors from "./view-errors.js";
import * as objects from "./view-objects.js";
import * as waits from "./view-waits.js";

/** Between polls, milliseconds: while somebody looks, while nobody does, and most while it fails. */
const [PACE, HIDDEN, FAILING] = [1500, 20_000, 6000];

const VIEWS = {
  "": { title: "Overview", ...pick(cluster) },
  objects: { title: "Objects", ...pick(objects) },
  waits: { title: "Waits", ...pick(waits) },
  sessions: { title: "Sessions", load: classes.loadSessions, view: classes.viewSessions },
  classes: { title: "Classes", ...pick(classes) },
  errors: { title: "Errors", ...pick(errors) },
};

function pick({ load, view }) {
  return { load, view };
}

const model = {
  route: routeOf(location.hash),
  cluster: null,
  /** The time by the cluster's clock, so that ages do not depend on the browser's. */
  now: 0,
  history: new History(),
  /** What the view has loaded, and why it could not be loaded anew. */
  data: null,
  problem: null,
  /** Polls that failed one after another, and when the last one did not. */
  failures: 0,
  heard: Date.now(),
  draw,
  poll: () => void poll(),
};

function routeOf(hash) {
  const [place, query] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = place
    .split("/")
    .filter((part) => part !== "")
    .map(decode);
  const view = Object.hasOwn(VIEWS, name ?? "") ? (name ?? "") : "";
  return {
    name: view,
    parts,
    query: new URLSearchParams(query ?? ""),
    place: [view, ...parts].join("/"),
    hash,
  };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let timer = 0;
let polling = false;
let again = false;

/** Asks the replica for all that is shown, once. */
async function poll() {
  if (polling) {
    again = true;
    return;
  }
  polling = true;
  clearTimeout(timer);
  do {
    again = false;
    // Without a leader a keep-alive waits, and what is known is shown meanwhile.
    void keepAlive();
    await Promise.all([pollCluster().then(draw), pollView().then(draw)]);
  } while (again);
  polling = false;
  const failing = Math.min(PACE * 2 ** Math.min(model.failures, 4), FAILING);
  timer = setTimeout(poll, document.hidden ? HIDDEN : model.failures > 0 ? failing : PACE);
}

async function pollCluster() {
  try {
    const start = performance.now();
    const { body, date } = await dated("/v1/cluster");
    const roundTrip = (performance.now() - start) / 1000;
    model.cluster = body;
    // An idle cluster stamps nothing, so its last stamp may be long ago; its hosts' clocks go on.
    model.now = Math.max(Date.parse(body.now), date);
    model.history.add(Date.now(), parse(await text("/metrics")), roundTrip);
    model.failures = 0;
    model.heard = Date.now();
  } catch {
    model.failures += 1;
  }
}

async function pollView() {
  const { route } = model;
  try {
    const data = await VIEWS[route.name].load(route);
    if (model.route === route) Object.assign(model, { data, problem: null });
  } catch (problem) {
    if (model.route === route) model.problem = problem;
  }
}

/** What is wrong with the replica or its group, as a sentence; nothing if all is well. */
function alarm() {
  const { cluster, failures, heard } = model;
  if (failures > 0) {
    return `This replica has not answered for ${duration(Date.now() - heard)}. What is shown is from before.`;
  }
  if (!cluster) return null;
  const all = cluster.members.length;
  if (!hasMajority(cluster)) {
    return `No leader can be had: this replica reaches ${reached(cluster).length} of ${all} members, itself included. Calls wait.`;
  }
  if (cluster.leader === null) return "There is no leader. Calls wait until one is elected.";
  if (cluster.leader !== cluster.replica && !cluster.connected.includes(cluster.leader)) {
    return `The leader, replica ${cluster.leader}, is not connected. Calls wait until it is, or another is elected.`;
  }
  return null;
}

function draw() {
  const { route, data, problem, cluster } = model;
  const view = VIEWS[route.name];
  const wrong = alarm();
  const name = cluster ? `replica ${cluster.replica}` : "replica";
  document.title = `${wrong ? "⚠ " : ""}${route.parts.join("/") || view.title} · ${name} · gesmas`;
  patch(document.getElementById("top"), frame(route, wrong));
  patch(document.getElementById("banner"), wrong ? [h("p", null, wrong)] : []);
  const main = document.getElementById("main");
  main.setAttribute("aria-busy", String(data === null && problem === null));
  patch(
    main,
    h(
      "div",
      { key: route.place, class: `view ${view.title.toLowerCase()}` },
      // That the replica does not answer is said once, by the banner.
      problem && model.failures === 0 && trouble(problem),
      view.view(model, data, route),
    ),
  );
}

function frame(route, wrong) {
  const { cluster } = model;
  const link = ([name, { title }]) =>
    h("a", { key: title, href: `#/${name}`, "aria-current": name === route.name ? "page" : null }, title);
  return [
    h(
      "div",
      { class: "brand" },
      h("b", null, "gesmas"),
      cluster && [
        h("span", null, " replica ", mono(cluster.replica)),
        h("small", { class: "mono wide" }, ` ${cluster.endpoint}`),
      ],
    ),
    h(
      "div",
      { class: wrong ? "state bad" : "state good", id: "state" },
      h("span", { class: "dot", "aria-hidden": "true" }),
      wrong
        ? "not serving"
        : cluster
          ? [
              "leader ",
              mono(cluster.leader),
              h("span", { class: "wide" }, ", step ", mono(count(cluster.step))),
            ]
          : "connecting",
    ),
    h("nav", { "aria-label": "Views" }, Object.entries(VIEWS).map(link)),
  ];
}

function navigate() {
  const route = routeOf(location.hash);
  // Another part of the same list replaces it when it is there: no blank in between.
  const elsewhere = route.place !== model.route.place;
  model.route = route;
  model.problem = null;
  if (elsewhere) {
    model.data = null;
    document.getElementById("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  draw();
  poll();
}

addEventListener("hashchange", navigate);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) poll();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
draw();
poll();
