// Several runs side by side: what they reached, whether that is luck, how they went, and where they differ.

import { divergingTable, table } from "./colours.js";
import { lineColour, link, METRICS, panel } from "./curves.js";
import { choice, el, replace } from "./dom.js";
import { MapView } from "./map.js";
import { figure, fixed } from "./numbers.js";
import { project } from "./projection.js";
import { inOrder, index, makeScale } from "./scale.js";
import { emptyColour } from "./theme.js";

const NAMES = { qd_score: "QD-score", coverage: "coverage, %", best: "best objective" };
const MOST_MAPS = 6;

export async function comparePage(source, query) {
  const ids = (query.get("runs") ?? "").split(",").filter(Boolean);
  if (ids.length < 2) throw new Error("A comparison needs two runs or more: choose them in the list.");
  const found = await source.compare(ids);
  const maps = new Maps(source, found.groups);
  const element = el(
    "div",
    { class: "compare" },
    el(
      "div",
      { class: "page-head" },
      el("div", {}, el("h1", {}, "Compare"), el("p", { class: "soft" }, summary(found.groups))),
      legend(found.groups),
    ),
    el("section", { class: "card table" }, reached(found)),
    tested(found),
    curves(found),
    maps.element,
  );
  return { element, title: "Compare", close: () => maps.close(), shown: () => maps.load() };
}

function summary(groups) {
  const sizes = Object.values(groups).map((runs) => runs.length);
  return `${sizes.reduce((a, b) => a + b, 0)} runs in ${sizes.length} groups. Runs that differ in their seed alone are one group.`;
}

function legend(groups) {
  return el(
    "ul",
    { class: "keys" },
    Object.keys(groups).map((name, i) => el("li", {}, el("i", { style: { background: lineColour(i) } }), name)),
  );
}

function reached({ table: rows, groups }) {
  const heads = ["group", "trials", "mean", "95 % interval", "median", "IQM"];
  const order = Object.keys(groups);
  const bodies = METRICS.map(([metric]) =>
    el(
      "tbody",
      {},
      el("tr", {}, el("th", { colspan: heads.length, class: "band-head", scope: "rowgroup" }, NAMES[metric])),
      rows
        .filter((row) => row.metric === metric)
        .map((row) =>
          el(
            "tr",
            {},
            el(
              "td",
              {},
              el("i", { class: "key", style: { background: lineColour(order.indexOf(row.group)) } }),
              row.group,
            ),
            [
              row.trials,
              fixed(row.mean, 3),
              row.low === null ? "–" : `${fixed(row.low, 3)} to ${fixed(row.high, 3)}`,
              fixed(row.median, 3),
              fixed(row.iqm, 3),
            ].map((value) => el("td", { class: "number" }, String(value))),
          ),
        ),
    ),
  );
  return el(
    "table",
    {},
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((name, i) => el("th", { class: i ? "number" : "" }, name)),
      ),
    ),
    bodies,
  );
}

function tested({ tests }) {
  if (!tests.length) return el("p", { class: "card hint" }, "A test between groups needs two runs or more in each.");
  const heads = ["metric", "first", "second", "p", "p, corrected", "first beats second"];
  const line = (test) =>
    el(
      "tr",
      {},
      [NAMES[test.metric], test.first, test.second].map((value) => el("td", {}, value)),
      [figure(test.p, 3), figure(test.corrected, 3), `${fixed(100 * test.effect, 0)} %`].map((value) =>
        el("td", { class: "number" }, value),
      ),
    );
  return el(
    "section",
    { class: "card table" },
    el(
      "table",
      {},
      el(
        "caption",
        {},
        "Mann–Whitney test, two-sided; corrected after Holm; how often a run of the first beats one of the second",
      ),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((name, i) => el("th", { class: i > 2 ? "number" : "" }, name)),
        ),
      ),
      el("tbody", {}, tests.map(line)),
    ),
  );
}

function curves({ curves: of, groups }) {
  const names = Object.keys(groups).filter((name) => of[name]?.iteration);
  if (!names.length) return null;
  const order = Object.keys(groups);
  const numbers = (values) => values.map((value) => value ?? NaN);
  const series = (metric) =>
    names.map((name) => {
      const { mean, low, high } = of[name][metric];
      const interval = low.some((value) => value !== null) ? { low: numbers(low), high: numbers(high) } : {};
      return { name, colour: lineColour(order.indexOf(name)), x: of[name].iteration, y: numbers(mean), ...interval };
    });
  const panels = METRICS.map(([metric, title]) => panel(title, "iterations", series(metric)));
  link(panels);
  return el(
    "section",
    { class: "card curves", "aria-label": "Curves" },
    el("div", { class: "card-head" }, el("h2", {}, "How they went: mean and 95 % interval over iterations")),
    el(
      "div",
      { class: "panels" },
      panels.map(({ svg }) => svg),
    ),
  );
}

// A map for each group, all with the same colours and looked at together; and one of the difference between two.
class Maps {
  constructor(source, groups) {
    Object.assign(this, { source, groups, views: [] });
    this.place = el("div", { class: "map-row" });
    this.chosen = Object.values(groups)
      .slice(0, MOST_MAPS)
      .map((runs) => runs[0].id);
    this.pair = [0, Math.min(1, this.chosen.length - 1)];
    this.element = el(
      "section",
      { class: "card", "aria-label": "Maps" },
      el("h2", {}, "Where they differ"),
      this.place,
    );
  }

  close() {
    this.views.forEach((view) => view.close());
  }

  async load() {
    this.runs = await Promise.all(
      this.chosen.map(async (id) => ({ run: await this.source.run(id), arrays: await this.source.elites(id) })),
    );
    const alike = this.runs.every(
      ({ run }) => JSON.stringify(run.archive.grid) === JSON.stringify(this.runs[0].run.archive.grid),
    );
    if (!alike || !this.runs[0].run.archive.grid)
      return replace(
        this.place,
        el("p", { class: "hint" }, "These maps have different cells, so they are not drawn over each other."),
      );
    this.draw();
  }

  draw() {
    this.close();
    const look = {
      x: 0,
      y: Math.min(1, this.runs[0].run.archive.labels.length - 1),
      fixed: this.runs[0].run.archive.labels.map(() => null),
    };
    const scale = makeScale(inOrder(this.runs.flatMap(({ arrays }) => Array.from(arrays.objective))), "linear");
    const colours = table("tide");
    this.views = [];
    const figures = this.runs.map(({ run, arrays }, i) =>
      this.figure(this.chooser(i), project(run.archive, arrays, look), run, (view) =>
        view.paint(colours, (row) => index(scale.share(arrays.objective[row])), emptyColour()),
      ),
    );
    replace(this.place, figures, this.difference(look));
    this.views.forEach((view) => {
      view.camera = this.views[0].camera;
      view.linked = this.views;
      view.resize();
    });
  }

  // Which run of a group is drawn.
  chooser(i) {
    const [name, runs] = Object.entries(this.groups)[i];
    const pick = (id) => {
      this.chosen[i] = id;
      this.load();
    };
    return runs.length > 1
      ? choice(
          name,
          runs.map((run) => [run.id, run.name]),
          this.chosen[i],
          pick,
        )
      : el("h3", {}, name);
  }

  figure(title, projection, run, paint) {
    const view = new MapView(
      { hover: (pixel) => this.hover(pixel), choose: () => {}, box: () => {} },
      `Map of ${run.name}`,
    );
    this.views.push(view);
    view.show(projection, [run.archive.labels[0], run.archive.labels[1] ?? ""]);
    paint(view);
    return el("figure", {}, el("figcaption", {}, title), view.canvas);
  }

  hover(pixel) {
    this.views.forEach((view) => (view.hovered = pixel));
    this.views.forEach((view) => view.draw());
  }

  // Blue where the first is better, red where the second is; grey-blue and grey-red where only one has an elite.
  difference(look) {
    const [first, second] = this.pair.map((i) => ({
      ...this.runs[i],
      projection: project(this.runs[i].run.archive, this.runs[i].arrays, look),
    }));
    const values = difference(first, second);
    const sizes = Float64Array.from(values.filter(Number.isFinite), Math.abs).sort();
    const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1; // a few large ones would leave the rest pale
    const colours = Uint8ClampedArray.from([...divergingTable(), 176, 190, 212, 214, 186, 172]);
    const colourOf = (pixel) =>
      Number.isFinite(values[pixel]) ? index((values[pixel] / most + 1) / 2) : values[pixel] > 0 ? 256 : 257;
    const both = {
      ...first.projection,
      rowOf: Int32Array.from(values, (value, pixel) => (Number.isNaN(value) ? -1 : pixel)),
    };
    const names = this.pair.map((i) => Object.keys(this.groups)[i]);
    const options = Object.keys(this.groups)
      .slice(0, this.chosen.length)
      .map((name, i) => [String(i), name]);
    const side = (which) =>
      choice(which ? "minus" : "Difference", options, String(this.pair[which]), (value) => {
        this.pair[which] = Number(value);
        this.draw();
      });
    const title = el("div", { class: "pair" }, side(0), side(1));
    const made = this.figure(title, both, { ...first.run, name: `${names[0]} minus ${names[1]}` }, (view) =>
      view.paint(colours, colourOf, emptyColour()),
    );
    made.append(
      el(
        "p",
        { class: "soft keys-line" },
        el("i", { class: "key", style: { background: "#2a64c4" } }),
        `${names[0]} better`,
        el("i", { class: "key", style: { background: "#b4572b" } }),
        `${names[1]} better; paler greys: only one of them`,
      ),
    );
    return made;
  }
}

// Pixel by pixel; plus or minus infinity where only one has an elite, NaN where neither has.
function difference(first, second) {
  return Array.from(first.projection.rowOf, (row, pixel) => {
    const other = second.projection.rowOf[pixel];
    if (row < 0 && other < 0) return NaN;
    if (row < 0 || other < 0) return row < 0 ? -Infinity : Infinity;
    return first.arrays.objective[row] - second.arrays.objective[other];
  });
}
