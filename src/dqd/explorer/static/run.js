// One run: its map, the elite that was chosen, and how it went.

import { PALETTES, table } from "./colours.js";
import { Curves } from "./curves.js";
import { Details } from "./details.js";
import { choice, el, hasAddress, replace, say } from "./dom.js";
import { Legend } from "./legend.js";
import { MapView } from "./map.js";
import { count, duration, fieldName, figure, fixed, isField, percent } from "./numbers.js";
import { picturesOf } from "./pictures.js";
import { pixelOf, project } from "./projection.js";
import { Replay } from "./replay.js";
import { badge } from "./runs.js";
import { SCALES, inOrder, index, makeScale } from "./scale.js";
import { Selection } from "./selection.js";
import { shareButton } from "./share.js";
import { emptyColour, recall, remember } from "./theme.js";

const HINT =
  "Wheel or pinch zooms, drag moves, a click shows the elite, arrow keys go from cell to cell; with Shift, both select.";
const POLL = { running: 1000, other: 5000 };

export async function runPage(source, id, query) {
  const run = await source.run(id); // first: elites that are newer than what is said of them are noticed at the next look
  const arrays = await source.elites(run.id);
  const page = new RunPage(source, run, arrays, query);
  return { element: page.element, title: run.name, close: () => page.close(), shown: () => page.shown() };
}

class RunPage {
  constructor(source, run, arrays, query) {
    Object.assign(this, { source, run, arrays, replayed: null, sorted: inOrder(arrays.objective) });
    const k = run.archive.labels.length;
    const axis = (name, fallback) =>
      query.has(name) && Number(query.get(name)) < k ? Number(query.get(name)) : fallback;
    this.look = {
      x: axis("x", 0),
      y: axis("y", Math.min(1, k - 1)),
      fixed: run.archive.labels.map(() => null),
      colour: query.get("colour") ?? "objective",
      scale: recall("scale", "linear"),
      palette: recall("palette", "tide"),
    };
    if (!PALETTES.includes(this.look.palette)) this.look.palette = "tide";
    this.build();
    this.chosen = this.rowOfCell(query.has("cell") ? Number(query.get("cell")) : -1);
    if (this.chosen < 0) this.chosen = this.bestRow();
  }

  build() {
    this.map = new MapView(
      {
        hover: (...at) => this.hover(...at),
        choose: (row) => this.choose(row),
        box: (rows) => this.selectBox(rows),
      },
      `Map of ${count(this.run.archive.elites)} elites. Arrow keys move from cell to cell, with Shift they select a box; plus and minus zoom, 0 shows all.`,
    );
    this.legend = new Legend();
    this.tip = el("div", { class: "tip", hidden: true });
    this.curves = new Curves();
    this.selection = new Selection(this.run, (row) => this.choose(row));
    this.replay = new Replay(
      (step) => this.source.view(this.run.id, step),
      (arrays) => this.showView(arrays),
    );
    this.details = new Details(
      this.run,
      { nearest: (at) => this.nearest(at), best: () => this.choose(this.bestRow(), true), link: () => this.link() },
      (rows) => this.solutions(rows),
    );
    this.head = el("div", { class: "page-head" });
    this.controls = el("div", { class: "controls" });
    const mapCard = el(
      "section",
      { class: "card map-card", "aria-label": "The map" },
      el("div", { class: "map-place" }, this.map.canvas, this.zoomer(), this.tip),
      el("div", { class: "side" }, this.controls, this.legend.element),
      this.replay.element,
      el("p", { class: "keys-hint" }, HINT),
    );
    const settings = el(
      "details",
      { class: "card settings" },
      el("summary", {}, "Settings"),
      el("pre", {}, JSON.stringify(this.run.settings, null, 2)),
    );
    this.element = el(
      "div",
      { class: "run" },
      this.head,
      el("div", { class: "columns" }, mapCard, this.details.element),
      this.selection.element,
      this.curves.element,
      settings,
    );
    this.findPictures();
    this.onTheme = () => this.paint();
    document.addEventListener("theme", this.onTheme);
    this.media = matchMedia("(prefers-color-scheme: dark)");
    this.media.addEventListener("change", this.onTheme);
  }

  findPictures() {
    this.map.pictures = this.details.pictures = picturesOf(this.run, this.source, this.arrays.cell, (rows) =>
      this.solutions(rows),
    );
  }

  shown() {
    this.refresh();
    this.loadRest();
    if (this.source.live) this.poll();
    if (this.chosen >= 0) this.choose(this.chosen, true);
    else this.details.nothing("No elite yet.");
  }

  close() {
    clearTimeout(this.timer);
    this.replay.stop();
    this.map.close();
    document.removeEventListener("theme", this.onTheme);
    this.media.removeEventListener("change", this.onTheme);
  }

  // What the map shows: the archive, or how it was when a view was kept.
  get data() {
    return this.replayed ?? this.arrays;
  }

  refresh() {
    this.showHead();
    this.showControls();
    this.reproject();
  }

  showHead() {
    const { run } = this;
    const kind = [run.domain, run.algorithm, run.seed === null ? null : `seed ${count(run.seed)}`]
      .filter(Boolean)
      .join(" · ");
    const figures = [
      ["QD-score", fixed(run.qd_score)],
      ["trusted", run.trusted_qd_score == null ? null : fixed(run.trusted_qd_score)],
      ["judges agree", run.agreement == null ? null : percent(run.agreement)],
      ["coverage", percent(run.coverage)],
      ["best", figure(run.best, 6)],
      ["elites", count(run.archive.elites)],
      ["iterations", run.iterations === null ? null : progress(run)],
      ["evaluations", run.evaluations === null ? null : count(run.evaluations)],
      ["time", run.seconds === null ? null : duration(run.seconds)],
    ];
    replace(
      this.head,
      el("div", {}, el("h1", {}, run.name, " ", badge(run)), el("p", { class: "soft" }, kind)),
      el(
        "dl",
        { class: "figures" },
        figures
          .filter(([, value]) => value !== null)
          .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
      ),
      this.source.live ? shareButton(this.source, run) : null,
    );
  }

  showControls() {
    const { labels, grid } = this.run.archive;
    const { look } = this;
    const set = (name, then) => (value) => {
      look[name] = ["x", "y"].includes(name) ? Number(value) : value;
      if (["scale", "palette"].includes(name)) remember(name, value);
      then();
    };
    const colours = [
      ["objective", "objective"],
      ...(this.arrays.found ? [["found", "age: iteration found"]] : []),
      ...labels.map((label, j) => [`measure-${j}`, label]),
      ...Object.keys(this.arrays).filter(isField).map((name) => [name, fieldName(name)]),
    ];
    const axes =
      labels.length > 2
        ? ["x", "y"].map((name) =>
            choice(
              name === "x" ? "Right" : "Up",
              labels.map((label, j) => [String(j), label]),
              String(look[name]),
              set(name, () => this.axesChanged()),
            ),
          )
        : [];
    const others =
      grid && labels.length > 2
        ? labels.map((label, j) => (j === look.x || j === look.y ? null : this.holder(label, j, grid)))
        : [];
    replace(
      this.controls,
      choice(
        "Colour",
        colours,
        look.colour,
        set("colour", () => this.recolour()),
      ),
      choice(
        "Scale",
        SCALES,
        look.scale,
        set("scale", () => this.recolour()),
      ),
      choice(
        "Palette",
        PALETTES,
        look.palette,
        set("palette", () => this.recolour()),
      ),
      axes,
      others,
    );
  }

  // A measure that is neither axis: the best over it, or one of its values.
  holder(label, j, grid) {
    const words = el("output");
    const slider = el("input", {
      type: "range",
      min: -1,
      max: grid.shape[j] - 1,
      value: this.look.fixed[j] ?? -1,
      "aria-label": `${label}: value shown`,
      oninput: () => {
        const index = Number(slider.value);
        this.look.fixed[j] = index < 0 ? null : index;
        tell();
        this.reproject();
      },
    });
    const tell = () => {
      const index = this.look.fixed[j];
      const width = (grid.upper[j] - grid.lower[j]) / grid.shape[j];
      words.textContent =
        index === null
          ? "best over all"
          : this.run.archive.categories?.[j]?.[index] ??
            `${figure(grid.lower[j] + index * width, 4)} to ${figure(grid.lower[j] + (index + 1) * width, 4)}`;
      slider.setAttribute("aria-valuetext", words.textContent);
    };
    tell();
    return el("label", { class: "choice holder" }, el("span", {}, label), slider, words);
  }

  axesChanged() {
    if (this.look.x === this.look.y) this.look.y = this.look.x === 0 ? 1 : 0;
    this.showControls();
    this.reproject();
  }

  zoomer() {
    const button = (words, label, act) =>
      el("button", { class: "round", "aria-label": label, title: label, onclick: act }, words);
    const all = () => {
      this.map.camera.fit();
      this.map.draw();
    };
    return el(
      "div",
      { class: "zoomer" },
      button("+", "Zoom in", () => this.map.zoom(1.8)),
      button("−", "Zoom out", () => this.map.zoom(1 / 1.8)),
      button("⤢", "Show all", all),
    );
  }

  reproject() {
    const { archive } = this.run;
    const { labels } = archive;
    this.projection = project(
      archive,
      { ...this.data, raster: this.arrays.raster, extent: this.arrays.extent },
      this.look,
    );
    this.map.show(
      this.projection,
      [labels[this.look.x], labels.length > 1 ? labels[this.look.y] : ""],
      [this.look.x, this.look.y].map((j) => archive.categories?.[j] ?? []),
    );
    this.map.chosen = this.replayed ? -1 : this.chosen;
    this.recolour();
  }

  // The values that give the colours, one for each row.
  values() {
    const { colour } = this.look;
    const k = this.run.archive.labels.length;
    const j = Number(/^measure-(\d+)$/.exec(colour)?.[1] ?? NaN);
    if (j < k && this.data.measures)
      return [
        this.run.archive.labels[j],
        Float64Array.from(this.data.cell, (_, row) => this.data.measures[row * k + j]),
      ];
    if (isField(colour) && this.data[colour]) return [fieldName(colour), this.data[colour]];
    if (colour === "found" && this.data.found) return ["iteration in which it was found", this.data.found];
    return ["objective", this.data.objective];
  }

  recolour() {
    const [label, values] = this.values();
    this.shownValues = values;
    this.scale = makeScale(
      values === this.arrays.objective || this.replayed ? this.sorted : inOrder(values),
      this.look.scale,
    );
    this.colours = table(this.look.palette);
    const note = this.scale.kind === this.look.scale ? "" : " (linear: log needs positive values)";
    this.legend.show(label + note, this.scale, this.colours);
    this.paint();
  }

  paint() {
    if (!this.scale) return;
    const { scale, shownValues } = this;
    this.map.paint(this.colours, (row) => index(scale.share(shownValues[row])), emptyColour());
    if (!this.map.canvas.dataset.drawn) this.map.canvas.dataset.drawn = performance.now();
  }

  hover(pixel, x, y) {
    const row = this.map.rowAt(pixel);
    this.tip.hidden = pixel === null;
    this.legend.mark(row < 0 ? null : this.shownValues[row]);
    if (pixel === null) return;
    const { labels } = this.run.archive;
    const at = this.map.measuresAt(pixel);
    const where = [labels[this.look.x], labels.length > 1 ? labels[this.look.y] : null]
      .filter((label) => label !== null)
      .map((label, i) => `${label} ${figure(at[i], 4)}`);
    replace(
      this.tip,
      el("strong", {}, row < 0 ? "empty" : figure(this.data.objective[row], 7)),
      el("span", {}, where.join(" · ")),
    );
    const box = this.tip.getBoundingClientRect();
    const width = this.map.canvas.clientWidth;
    this.tip.style.left = `${Math.min(x + 14, width - box.width - 4)}px`;
    this.tip.style.top = `${y > 80 ? y - box.height - 12 : y + 18}px`;
  }

  // Rows are those of what is shown; in a replay, the cell's elite of today is chosen.
  choose(row, centre = false) {
    const now = this.replayed ? this.rowOfCell(this.replayed.cell[row]) : row;
    if (now < 0) return;
    this.chosen = now;
    this.map.choose(now);
    if (centre) this.bringIntoSight();
    this.details.show(this.arrays, now, this.sorted);
    if (hasAddress()) history.replaceState(null, "", this.hash());
    say(`Cell ${this.arrays.cell[now]}, objective ${figure(this.arrays.objective[now], 7)}`);
  }

  selectBox(rows) {
    this.selection.show(this.data, rows);
    say(`${count(rows.length)} elites in the box`);
  }

  bringIntoSight() {
    const pixel = pixelOf(this.projection, this.chosen);
    if (pixel >= 0) this.map.camera.show(pixel % this.projection.columns, Math.floor(pixel / this.projection.columns));
    this.map.draw();
  }

  nearest(at) {
    const k = at.length;
    const spans = at.map((_, j) => spanOf(this.run.archive, this.arrays, j));
    let [best, row] = [Infinity, -1];
    for (let i = 0; i < this.arrays.cell.length; i++) {
      let distance = 0;
      for (let j = 0; j < k; j++) distance += ((this.arrays.measures[i * k + j] - at[j]) / spans[j]) ** 2;
      if (distance < best) [best, row] = [distance, i];
    }
    if (row >= 0) this.choose(row, true);
  }

  bestRow() {
    const { objective } = this.arrays;
    let best = objective.length ? 0 : -1;
    for (let row = 1; row < objective.length; row++) if (objective[row] > objective[best]) best = row;
    return best;
  }

  rowOfCell(cell) {
    return this.arrays.cell.indexOf(cell);
  }

  hash() {
    const query = new URLSearchParams({ cell: this.arrays.cell[this.chosen] });
    if (this.run.archive.labels.length > 2)
      Object.entries({ x: this.look.x, y: this.look.y }).forEach((pair) => query.set(...pair));
    if (this.look.colour !== "objective") query.set("colour", this.look.colour);
    return `#/run/${this.run.id}?${query}`;
  }

  link() {
    return new URL(this.hash(), location.href).href;
  }

  async solutions(rows) {
    const flat = await this.source.solutions(
      this.run.id,
      rows.map((row) => this.arrays.cell[row]),
    );
    const n = flat.shape[1];
    return rows.map((_, i) => flat.subarray(i * n, (i + 1) * n));
  }

  showView(arrays) {
    this.replayed = arrays;
    this.reproject();
  }

  async loadRest() {
    const [curves, views] = await Promise.all([this.source.curves(this.run.id), this.source.views(this.run.id)]);
    this.curves.show(curves);
    this.replay.offer(this.projection.squares || this.arrays.raster ? views : []);
  }

  // Look again from time to time; what is new is shown at once.
  poll() {
    this.timer = setTimeout(
      async () => {
        const found = document.hidden ? null : await this.source.stamp(this.run.id).catch(() => null);
        if (found && (found.stamp !== this.run.stamp || found.state !== this.run.state))
          await this.update().catch(() => {});
        this.poll();
      },
      this.run.state === "running" ? POLL.running : POLL.other,
    );
  }

  async update() {
    const run = await this.source.run(this.run.id);
    const arrays = await this.source.elites(this.run.id);
    const cell = this.chosen < 0 ? -1 : this.arrays.cell[this.chosen];
    const before = this.chosen < 0 ? NaN : this.arrays.objective[this.chosen];
    Object.assign(this, { run, arrays, sorted: inOrder(arrays.objective) });
    this.details.run = this.selection.run = run;
    this.findPictures();
    this.chosen = this.rowOfCell(cell);
    this.showHead();
    if (!this.replayed) this.reproject();
    if (this.chosen < 0) this.chosen = this.bestRow();
    if (this.chosen >= 0 && this.arrays.objective[this.chosen] !== before) this.choose(this.chosen);
    this.loadRest();
  }
}

function progress(run) {
  return run.planned && run.planned > run.iterations
    ? `${count(run.iterations)} of ${count(run.planned)}`
    : count(run.iterations);
}

function spanOf(archive, { measures }, j) {
  if (archive.grid) return archive.grid.upper[j] - archive.grid.lower[j];
  const k = archive.labels.length;
  let [low, high] = [Infinity, -Infinity];
  for (let i = j; i < measures.length; i += k) [low, high] = [Math.min(low, measures[i]), Math.max(high, measures[i])];
  return high > low ? high - low : 1;
}
