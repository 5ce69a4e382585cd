// How the map filled: a slider over the pictures that the run kept.

import { el } from "./dom.js";
import { count } from "./numbers.js";

const FRAME = 90; // milliseconds

export class Replay {
  // `steps` are iterations; `viewOf(step)` promises arrays; `show(arrays or null)` puts them on the map.
  constructor(viewOf, show) {
    Object.assign(this, { viewOf, show, steps: [], kept: new Map(), timer: null });
    this.words = el("output", { class: "replay-words" });
    this.slider = el("input", {
      type: "range",
      min: 0,
      value: 0,
      "aria-label": "Iteration shown",
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.button = el(
      "button",
      {
        class: "round",
        "aria-label": "Play how the map filled",
        onclick: () => (this.timer ? this.stop() : this.play()),
      },
      "▶",
    );
    this.element = el("div", { class: "replay", hidden: true }, this.button, this.slider, this.words);
  }

  offer(steps) {
    const atEnd = Number(this.slider.value) >= this.steps.length;
    this.steps = steps;
    this.slider.max = steps.length; // the last place is the archive as it is now
    if (atEnd) this.slider.value = steps.length;
    this.element.hidden = steps.length < 2;
    this.label();
  }

  get atEnd() {
    return Number(this.slider.value) >= this.steps.length;
  }

  label() {
    const step = this.steps[Number(this.slider.value)];
    this.words.textContent = step === undefined ? "now" : `iteration ${count(step)}`;
    this.slider.setAttribute("aria-valuetext", this.words.textContent);
  }

  async go(i) {
    this.slider.value = i;
    this.label();
    const step = this.steps[i];
    if (step === undefined) return this.show(null);
    if (!this.kept.has(step)) this.kept.set(step, this.viewOf(step));
    const arrays = await this.kept.get(step).catch(() => null);
    if (arrays && Number(this.slider.value) === i) this.show(arrays);
  }

  play() {
    let i = this.atEnd ? -1 : Number(this.slider.value);
    this.button.textContent = "❚❚";
    const next = async () => {
      await this.go(++i);
      if (i >= this.steps.length) this.stop();
      else if (this.timer) this.timer = setTimeout(next, FRAME);
    };
    this.timer = setTimeout(next, 0);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.button.textContent = "▶";
  }
}
