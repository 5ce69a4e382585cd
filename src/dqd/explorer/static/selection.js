// The elites in a box, as a table that can be downloaded.

import { el, replace, save } from "./dom.js";
import { count, figure } from "./numbers.js";

const LISTED = 200; // rows; the download has all

export class Selection {
  constructor(run, choose) {
    Object.assign(this, { run, choose });
    this.element = el("section", { class: "card selection", "aria-label": "Elites in the box", hidden: true });
  }

  show(arrays, rows) {
    this.element.hidden = rows.length === 0;
    if (!rows.length || !arrays.measures) return;
    const { labels } = this.run.archive;
    const k = labels.length;
    const sorted = [...rows].sort((a, b) => arrays.objective[b] - arrays.objective[a]);
    const numbers = (row) => [
      arrays.objective[row],
      ...labels.map((_, j) => arrays.measures[row * k + j]),
      ...(arrays.found ? [arrays.found[row]] : []),
    ];
    const names = ["objective", ...labels, ...(arrays.found ? ["found"] : [])];
    const download = () =>
      save(
        "selection.csv",
        csv(
          ["cell", ...names],
          sorted.map((row) => [arrays.cell[row], ...numbers(row)]),
        ),
        "text/csv",
      );
    const line = (row) =>
      el(
        "tr",
        {},
        el(
          "td",
          { class: "number" },
          el("button", { class: "link", onclick: () => this.choose(row) }, count(arrays.cell[row])),
        ),
        numbers(row).map((value) => el("td", { class: "number" }, figure(value, 7))),
      );
    const close = () => (this.element.hidden = true);
    replace(
      this.element,
      el(
        "div",
        { class: "card-head" },
        el("h2", {}, `${count(rows.length)} elites in the box`),
        el(
          "div",
          { class: "buttons" },
          el("button", { class: "quiet", onclick: download }, "Download CSV"),
          el("button", { class: "quiet", onclick: close }, "Close"),
        ),
      ),
      el(
        "div",
        { class: "table scroll", tabindex: 0 },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              ["cell", ...names].map((name) => el("th", { class: "number" }, name)),
            ),
          ),
          el("tbody", {}, sorted.slice(0, LISTED).map(line)),
        ),
      ),
      rows.length > LISTED ? el("p", { class: "soft" }, `The best ${LISTED} are listed; the download has all.`) : null,
    );
  }
}

function csv(names, rows) {
  const quoted = names.map((name) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name));
  return [quoted, ...rows].map((row) => row.join(",")).join("\n") + "\n";
}
