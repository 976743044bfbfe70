// Who waits for whom: a graph of blocked calls, semaphores, and those that own permits.
//
//   call ──waits for──► semaphore ──is owned by──► call or session ──has blocked──► call
//
// Invariants: what is computed depends on its arguments alone; waiters stay in the order in which
// the semaphore will wake them.
// A cycle means that each in it waits for the next. A session in it could still give back what it
// has, and so could another owner outside, so it is shown, not called a deadlock: those that are
// certain are ended by the kernel.

const call = (id) => `call ${id}`;
const session = (id) => `session ${id}`;

/** The semaphores that somebody waits for, with owners and waiters; and the cycles. */
export function build(invocations, objects) {
  const blocked = new Map(invocations.map((invocation) => [invocation.invocation, invocation]));
  const edges = new Map();
  const join = (from, to) => edges.set(from, [...(edges.get(from) ?? []), to]);
  const queues = [];
  for (const object of objects) {
    for (const semaphore of object.semaphores) {
      if (semaphore.waiters.length === 0) continue;
      const name = `${object.object} ${semaphore.path}`;
      const waiters = semaphore.waiters.map((id) => blocked.get(id) ?? { invocation: id });
      const owners = semaphore.owners.map((owner) => owner.replace(/^invocation /, "call "));
      queues.push({
        name,
        object: object.object,
        semaphore: semaphore.path,
        count: semaphore.count,
        owners,
        waiters,
      });
      for (const waiter of waiters) join(call(waiter.invocation), name);
      for (const owner of new Set(owners)) join(name, owner);
    }
  }
  for (const invocation of invocations) {
    if (invocation.session) join(session(invocation.session), call(invocation.invocation));
  }
  const cycles = components(edges).map((component) => walk(edges, component));
  return { queues, cycles, inCycle: new Set(cycles.flat()) };
}

/** Sets of nodes that reach each other (Tarjan's algorithm), with more than one node. */
function components(edges) {
  const [order, low, stack, found] = [new Map(), new Map(), [], []];
  const visit = (node) => {
    order.set(node, order.size);
    low.set(node, order.get(node));
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node), low.get(next)));
      } else if (stack.includes(next)) {
        low.set(node, Math.min(low.get(node), order.get(next)));
      }
    }
    if (low.get(node) !== order.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    if (component.length > 1) found.push(new Set(component));
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return found;
}

/** One way round through a set of nodes that reach each other, from the oldest session or call. */
function walk(edges, component) {
  const age = (node) => Number(/^(?:session|call) (\d+)$/.exec(node)?.[1] ?? Infinity);
  const sessions = [...component].filter((node) => node.startsWith("session "));
  const [start] = (sessions.length > 0 ? sessions : [...component]).sort(
    (one, other) => age(one) - age(other),
  );
  const from = new Map([[start, null]]);
  const waiting = [start];
  for (const node of waiting) {
    for (const next of edges.get(node).filter((next) => component.has(next))) {
      if (next === start) return way(from, node);
      if (!from.has(next)) {
        from.set(next, node);
        waiting.push(next);
      }
    }
  }
  return [...component];
}

function way(from, last) {
  const nodes = [];
  for (let node = last; node !== null; node = from.get(node)) nodes.unshift(node);
  return nodes;
}
