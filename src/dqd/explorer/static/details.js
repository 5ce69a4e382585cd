// One elite: its picture, its numbers, where it lies and when it was found.

import { copy, el, hasAddress, replace, save } from "./dom.js";
import { count, fieldName, figure, isField } from "./numbers.js";
import { rank } from "./scale.js";
import { drawSparkline } from "./sparkline.js";

export class Details {
  // `wishes`: nearest(measures), best(), link(); `solutionsOf(rows)` promises solutions.
  constructor(run, wishes, solutionsOf) {
    Object.assign(this, { run, wishes, solutionsOf });
    this.body = el("div", { class: "details-body" });
    this.element = el("section", { class: "card details", "aria-label": "The chosen elite" }, this.finder(), this.body);
    this.row = null;
  }

  finder() {
    const { labels } = this.run.archive;
    const fields = labels.map((label) =>
      el("input", { type: "number", step: "any", "aria-label": label, placeholder: label, required: true }),
    );
    const submit = (event) => {
      event.preventDefault();
      this.wishes.nearest(fields.map((field) => Number(field.value)));
    };
    const best = el("button", { type: "button", class: "quiet", onclick: () => this.wishes.best() }, "Best elite");
    const go = el("button", { type: "submit", class: "quiet" }, "Nearest elite");
    return el(
      "form",
      { class: "finder", onsubmit: submit },
      el("div", { class: "finder-fields" }, fields),
      el("div", { class: "buttons" }, go, best),
    );
  }

  nothing(words) {
    replace(this.body, el("p", { class: "hint" }, words));
  }

  async show(arrays, row, sorted) {
    this.row = row;
    const { archive } = this.run;
    const cell = arrays.cell[row];
    const objective = arrays.objective[row];
    const better = Math.floor((rank(sorted, objective) / Math.max(sorted.length - 1, 1)) * 100);
    const figures = el(
      "dl",
      { class: "facts" },
      fact(
        "objective",
        figure(objective, 8),
        better === 100 ? `the best of ${count(sorted.length)}` : `better than ${better} % of ${count(sorted.length)}`,
        "main",
      ),
      archive.labels.map((label, j) => {
        const value = arrays.measures[row * archive.labels.length + j];
        return fact(label, archive.categories?.[j]?.[Math.round(value)] ?? figure(value, 7));
      }),
      Object.keys(arrays)
        .filter(isField)
        .map((name) => fact(fieldName(name), figure(arrays[name][row], 7))),
      arrays.found ? fact("found", `iteration ${count(arrays.found[row])}`, this.when(arrays.found[row])) : null,
      fact("cell", count(cell), place(archive.grid, cell)),
    );
    const picture = this.pictures
      ? el("canvas", { class: "picture", role: "img", "aria-label": "The solution, drawn" })
      : null;
    const solution = el("div", { class: "solution" });
    replace(this.body, picture, figures, solution);
    if (picture) paint(picture, this.pictures, row);
    await this.showSolution(row, cell, solution);
  }

  when(found) {
    const whole = this.run.iterations;
    return whole ? `${Math.round((found / whole) * 100)} % of the way` : "";
  }

  async showSolution(row, cell, place) {
    if (!this.run.archive.numbers) return replace(place, el("p", { class: "hint" }, "Saved without its solutions."));
    let solution;
    try {
      [solution] = await this.solutionsOf([row]);
    } catch (error) {
      return replace(place, el("p", { class: "hint" }, error.message));
    }
    if (this.row !== row) return;
    const spark = el("canvas", {
      class: "sparkline",
      role: "img",
      "aria-label": `The ${solution.length} numbers of the solution as bars`,
    });
    const range = el("span", { class: "soft" });
    const text = JSON.stringify(Array.from(solution));
    const copying = el("button", { class: "quiet", onclick: () => copy(text, copying) }, "Copy numbers");
    const saving = el(
      "button",
      { class: "quiet", onclick: () => save(`cell-${cell}.json`, text, "application/json") },
      "Download",
    );
    const linking = hasAddress()
      ? el("button", { class: "quiet", onclick: () => copy(this.wishes.link(), linking) }, "Copy link")
      : null;
    replace(
      place,
      el("h3", {}, `Solution, ${count(solution.length)} numbers`),
      spark,
      range,
      el("div", { class: "buttons" }, copying, saving, linking),
    );
    const [low, high] = drawSparkline(spark, solution);
    range.textContent = `from ${figure(low)} to ${figure(high)}`;
  }
}

function fact(name, value, remark = "", kind = "") {
  return el("div", { class: kind }, el("dt", {}, name), el("dd", {}, value, remark ? el("small", {}, remark) : null));
}

// Where a cell lies along every measure.
function place(grid, cell) {
  if (!grid) return "";
  let rest = cell;
  const along = [...grid.shape].reverse().map((length) => {
    const index = rest % length;
    rest = Math.floor(rest / length);
    return index;
  });
  return `at ${along.reverse().join(", ")}`;
}

// Now, or when what it needs has come.
function paint(canvas, pictures, row) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const drawn = pictures.draw(context, row, { x: 0, y: 0, width, height }, getComputedStyle(canvas), false);
  if (!drawn && canvas.isConnected) pictures.want([row], () => paint(canvas, pictures, row));
}
