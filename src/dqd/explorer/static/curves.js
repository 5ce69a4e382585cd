// How the metrics went, in small panels that share one pointer.

import { LINES } from "./colours.js";
import { el, replace, shape } from "./dom.js";
import { figure, ticks } from "./numbers.js";

export const METRICS = [
  ["qd_score", "QD-score"],
  ["coverage", "coverage, %"],
  ["best", "best objective"],
];
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 190, 48, 24, 26, 30];

// Series are {name, colour, x: [...], y: [...], low: [...]?, high: [...]?}.
export function panel(title, xLabel, series) {
  const points = series
    .flatMap((each) => [...each.y, ...(each.low ?? []), ...(each.high ?? [])])
    .filter(Number.isFinite);
  const [lowX, highX] = ends(series.flatMap((each) => each.x));
  const [lowY, highY] = ends(points);
  const toX = (value) => LEFT + ((value - lowX) / (highX - lowX)) * (WIDTH - LEFT - RIGHT);
  const toY = (value) => TOP + (1 - (value - lowY) / (highY - lowY)) * (HEIGHT - TOP - BOTTOM);
  const readout = shape("text", { x: WIDTH - RIGHT, y: 15, class: "readout", "text-anchor": "end" });
  const rule = shape("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "rule", visibility: "hidden" });
  const svg = el(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": described(title, xLabel, series) },
    grid(lowX, highX, lowY, highY, toX, toY),
    series
      .filter((each) => each.low)
      .map((each) => shape("path", { d: band(each, toX, toY), fill: each.colour, class: "band" })),
    series.map((each) => shape("path", { d: path(each, toX, toY), stroke: each.colour, class: "line" })),
    shape("text", { x: LEFT, y: 15, class: "name" }, title),
    rule,
    readout,
  );
  const at = (x) => {
    rule.setAttribute("visibility", x === null ? "hidden" : "visible");
    if (x === null) return (readout.textContent = "");
    const value = Math.min(Math.max(x, lowX), highX);
    rule.setAttribute("x1", toX(value));
    rule.setAttribute("x2", toX(value));
    readout.textContent = series.map((each) => figure(each.y[nearest(each.x, value)])).join(" · ");
  };
  const toValue = (share) => lowX + ((share * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT)) * (highX - lowX);
  return { svg, at, toValue };
}

const AXES = [
  ["iteration", "iterations"],
  ["evaluations", "evaluations"],
  ["seconds", "seconds"],
];

// One run's curves, against iterations, evaluations or seconds.
export class Curves {
  constructor() {
    this.by = "iteration";
    this.panels = el("div", { class: "panels" });
    const pick = (value) => () => {
      this.by = value;
      this.draw();
    };
    this.buttons = AXES.map(([value, words]) => el("button", { class: "segment", onclick: pick(value), value }, words));
    this.element = el(
      "section",
      { class: "card curves", "aria-label": "Curves" },
      el(
        "div",
        { class: "card-head" },
        el("h2", {}, "How it went"),
        el("div", { class: "segments", role: "group", "aria-label": "Against" }, this.buttons),
      ),
      this.panels,
    );
  }

  // `timings` and `counts` say what had been spent at some iterations; metrics know their evaluations, but for old runs.
  show({ metrics, timings, counts }) {
    this.spent = { evaluations: metrics.evaluations ? metrics : counts, seconds: timings };
    this.series = METRICS.filter(([name]) => metrics[name]).map(([name, title]) => [title, metrics.iteration, metrics[name]]);
    if (counts.restarts?.length > 1) this.series.push(["restarts", counts.iteration, counts.restarts]);
    for (const button of this.buttons)
      button.disabled = button.value !== "iteration" && !(this.spent[button.value][button.value]?.length > 1);
    this.element.hidden = !(metrics.iteration?.length > 1);
    if (!this.element.hidden) this.draw();
  }

  draw() {
    this.buttons.forEach((button) => button.setAttribute("aria-pressed", button.value === this.by));
    const along = (iterations) =>
      this.by === "iteration" ? iterations : iterations.map((i) => spentAt(this.spent[this.by], this.by, i));
    const made = this.series.map(([title, iterations, values]) =>
      panel(title, this.by === "iteration" ? "iterations" : this.by, [
        { name: title, colour: "var(--accent)", x: along(iterations), y: values.map((value) => value ?? NaN) },
      ]),
    );
    link(made);
    replace(
      this.panels,
      made.map(({ svg }) => svg),
    );
  }
}

// The pointer over one panel is the pointer over all.
export function link(panels) {
  for (const { svg, toValue } of panels) {
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      panels.forEach((each) => each.at(toValue((event.clientX - box.left) / box.width)));
    });
    svg.addEventListener("pointerleave", () => panels.forEach((each) => each.at(null)));
  }
}

// Between two lines of a table; before the first, on the line through the first two.
function spentAt(table, name, wanted) {
  const i = Math.max(nearestAbove(table.iteration, wanted), 1);
  const [i0, i1] = [table.iteration[i - 1], table.iteration[i]];
  const [s0, s1] = [table[name][i - 1], table[name][i]];
  return Math.max(0, s0 + ((s1 - s0) * (wanted - i0)) / Math.max(i1 - i0, 1e-9));
}

function nearestAbove(sorted, value) {
  const found = sorted.findIndex((each) => each >= value);
  return found < 0 ? sorted.length - 1 : found;
}

function nearest(sorted, value) {
  const i = nearestAbove(sorted, value);
  return i > 0 && value - sorted[i - 1] < sorted[i] - value ? i - 1 : i;
}

function ends(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return low < high ? [low, high] : [low - 0.5 || 0, high + 0.5 || 1];
}

function grid(lowX, highX, lowY, highY, toX, toY) {
  const lines = ticks(lowY, highY, 4).flatMap((value) => [
    shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: toY(value), y2: toY(value), class: "grid" }),
    shape("text", { x: LEFT - 6, y: toY(value) + 4, "text-anchor": "end" }, figure(value)),
  ]);
  const below = ticks(lowX, highX, 4).map((value) =>
    shape("text", { x: toX(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, figure(value)),
  );
  return [...lines, ...below];
}

function path({ x, y }, toX, toY) {
  let pen = "M";
  return x
    .map((value, i) => {
      if (!Number.isFinite(y[i])) return "";
      const step = `${pen}${toX(value).toFixed(2)} ${toY(y[i]).toFixed(2)}`;
      pen = "L";
      return step;
    })
    .join("");
}

function band({ x, low, high }, toX, toY) {
  const forth = x.map((value, i) => `${toX(value).toFixed(2)} ${toY(high[i]).toFixed(2)}`);
  const back = x.map((value, i) => `${toX(value).toFixed(2)} ${toY(low[i]).toFixed(2)}`).reverse();
  return `M${forth.join("L")}L${back.join("L")}Z`;
}

function described(title, xLabel, series) {
  const last = series.map((each) => `${each.name} ends at ${figure(each.y[each.y.length - 1])}`).join(", ");
  return `${title} against ${xLabel}: ${last}`;
}

export const lineColour = (i) => LINES[i % LINES.length];
