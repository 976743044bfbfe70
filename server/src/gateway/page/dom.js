// Describing elements and bringing the document to a description.
//
// A view describes what should be there (`h`); `patch` changes what differs and leaves the rest
// alone. So a poll neither flickers nor takes the focus, the selection, a scroll position or what
// somebody is typing.
// Invariants: text is only ever set as text, never read as markup; an attribute is touched only when
// its description changes, so what a user did to an element (typed, opened) stays; children with a
// key keep their element when others come, go or change places.
// Not here: components, life cycles, state. Views are functions.

const SVG = "http://www.w3.org/2000/svg";
/** Where an element keeps the description it was last brought to. */
const LAST = Symbol("description");

/**
 * Describes an element. An attribute `onNAME` is a listener, `key` names it among its siblings;
 * `true` stands for an empty attribute, `false` and `null` for none. Children are descriptions,
 * texts and lists of these; `null` and `false` are left out.
 */
export function h(tag, attributes, ...children) {
  const flat = children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
  const { key = null, ...rest } = attributes ?? {};
  return {
    tag,
    key,
    attributes: rest,
    children: flat.map((child) => (typeof child === "object" ? child : String(child))),
  };
}

/** Brings the children of an element to what is described. */
export function patch(parent, wanted) {
  const children = [wanted].flat(Infinity).filter((child) => child !== null && child !== false);
  const keys = new Set(children.map((child) => child.key ?? null));
  const keyed = new Map();
  for (const node of [...parent.childNodes]) {
    const key = node[LAST]?.key ?? null;
    if (key !== null && keys.has(key)) keyed.set(key, node);
    else if (key !== null) node.remove();
  }
  let cursor = parent.firstChild;
  for (const child of children) {
    const found = child.key ? keyed.get(child.key) : cursor;
    const node = fits(found, child) ? found : create(parent, child);
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
    update(node, child);
  }
  while (cursor) {
    const next = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

/** Whether an element can be brought to a description. */
function fits(node, child) {
  if (!node) return false;
  if (typeof child === "string") return node.nodeType === Node.TEXT_NODE;
  const last = node[LAST];
  return last !== undefined && last.tag === child.tag && last.key === child.key;
}

function create(parent, child) {
  if (typeof child === "string") return document.createTextNode(child);
  const vector = child.tag === "svg" || parent.namespaceURI === SVG;
  const node = vector ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  node[LAST] = { tag: child.tag, key: child.key, attributes: {}, children: [] };
  return node;
}

function update(node, child) {
  if (typeof child === "string") {
    if (node.data !== child) node.data = child;
    return;
  }
  const before = node[LAST].attributes;
  node[LAST] = child;
  for (const name of Object.keys(before)) {
    if (!(name in child.attributes)) set(node, name, null);
  }
  for (const [name, value] of Object.entries(child.attributes)) {
    if (before[name] !== value) set(node, name, value, before[name] !== undefined);
  }
  patch(node, child.children);
}

function set(node, name, value, again) {
  if (name.startsWith("on")) {
    // One listener for good, which looks up what is to be done now.
    if (value && !again)
      node.addEventListener(name.slice(2), (event) => node[LAST].attributes[name]?.(event));
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}
