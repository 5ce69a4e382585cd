// The colour bar: what the colours mean, how often each occurs, and where the cell under the pointer lies.

import { css } from "./colours.js";
import { el } from "./dom.js";
import { figure } from "./numbers.js";
import { index } from "./scale.js";

const [WIDTH, HEIGHT, BAR, BINS] = [160, 512, 36, 64];

export class Legend {
  constructor() {
    this.canvas = el("canvas", { width: WIDTH, height: HEIGHT, role: "img" });
    this.marker = el("span", { class: "legend-mark", hidden: true });
    this.ends = [1, 0.75, 0.5, 0.25, 0].map((share) => [share, el("span")]);
    this.name = el("div", { class: "legend-name" });
    const words = el(
      "div",
      { class: "legend-ends" },
      this.ends.map(([, element]) => element),
    );
    this.element = el(
      "div",
      { class: "legend" },
      this.name,
      el("div", { class: "legend-bar" }, this.canvas, this.marker),
      words,
    );
  }

  show(label, scale, colours) {
    this.scale = scale;
    this.name.textContent = label;
    const cut = scale.sorted.length && scale.sorted[0] < scale.low && scale.kind !== "quantile" ? "≤ " : "";
    for (const [share, element] of this.ends)
      element.textContent = `${share === 0 ? cut : ""}${figure(scale.value(share))}`;
    this.canvas.setAttribute(
      "aria-label",
      `Colours of ${label}: from dark for ${figure(scale.value(0))} to light for ${figure(scale.value(1))}`,
    );
    this.draw(colours);
  }

  // The histogram stands on the bar, which runs upward.
  draw(colours) {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, WIDTH, HEIGHT);
    const counts = new Float64Array(BINS);
    for (const value of this.scale.sorted) counts[Math.floor((index(this.scale.share(value)) * BINS) / 256)]++;
    const most = Math.max(...counts, 1);
    counts.forEach((count, i) => {
      const length = count ? Math.max(2, Math.sqrt(count / most) * (WIDTH - BAR - 6)) : 0;
      context.fillStyle = css(colours, Math.floor(((i + 0.5) * 256) / BINS));
      context.fillRect(BAR + 6, HEIGHT - ((i + 1) * HEIGHT) / BINS, length, HEIGHT / BINS - 1);
    });
    for (let i = 0; i < 256; i++) {
      context.fillStyle = css(colours, i);
      context.fillRect(0, HEIGHT - ((i + 1) * HEIGHT) / 256, BAR, HEIGHT / 256 + 1);
    }
  }

  mark(value) {
    this.marker.hidden = value === null;
    if (value !== null) this.marker.style.bottom = `${(index(this.scale.share(value)) / 255) * 100}%`;
  }
}
