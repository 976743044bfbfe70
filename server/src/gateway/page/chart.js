// A line of the last minutes, without axes: for the shape, beside the number.
//
// Invariant: time goes evenly from left to right whatever the pace of the polls, and a gap in the
// numbers is a gap in the line.

import { h } from "./dom.js";
import { SPAN } from "./metrics.js";

const [WIDTH, HEIGHT, MARGIN] = [200, 32, 2];

/** The points as a picture with a name for those who do not see it. */
export function sparkline(points, label) {
  const newest = points.at(-1)?.at ?? 0;
  const greatest = Math.max(...points.map(({ value }) => value ?? 0), 1e-9);
  const place = ({ at, value }) => {
    const x = WIDTH * (1 - (newest - at) / SPAN);
    const y = HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * value) / greatest;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  };
  let pen = "M";
  let path = "";
  for (const point of points) {
    if (point.value === null) {
      pen = "M";
      continue;
    }
    path += pen + place(point);
    pen = "L";
  }
  return h(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    h("path", { class: "base", d: `M0 ${HEIGHT - 1}H${WIDTH}` }),
    h("path", { class: "line", d: path === "" ? "M0 0" : path }),
  );
}
