// The runs of a folder: sorted, filtered, and kept up to date.

import { choice, el, replace } from "./dom.js";
import { ago, count, figure, fixed, percent } from "./numbers.js";
import { thumbnail } from "./thumbnail.js";

const POLL = 2000;
const COLUMNS = [
  // key, heading, cell, whether numbers
  ["name", "Run", (run) => run.name, false],
  ["domain", "Problem", (run) => run.domain || "–", false],
  ["algorithm", "Algorithm", (run) => run.algorithm || "–", false],
  ["seed", "Seed", (run) => count(run.seed), true],
  ["qd_score", "QD-score", (run) => fixed(run.qd_score), true],
  ["coverage", "Coverage", (run) => percent(run.coverage), true],
  ["best", "Best", (run) => figure(run.best, 6), true],
  ["changed", "Changed", (run) => ago(run.changed), true],
  ["state", "State", (run) => run.state, false],
];

export async function runsPage(source, first) {
  const wanted = { text: "", state: "all", sort: "changed", down: true, chosen: new Set() };
  const thumbnails = new Map();
  let runs = first.runs;
  const body = el("tbody");
  const head = el("tr");
  const summary = el("p", { class: "soft" });
  const compare = el("a", { class: "button", href: "#/compare", hidden: true }, "Compare");
  const search = el("input", {
    type: "search",
    placeholder: "Filter by any word",
    "aria-label": "Filter the runs",
    oninput: () => {
      wanted.text = search.value.toLowerCase();
      draw();
    },
  });

  const sortBy = (key) => () => {
    wanted.down = wanted.sort === key ? !wanted.down : ["qd_score", "coverage", "best", "changed"].includes(key);
    wanted.sort = key;
    draw();
  };
  const pick = (run) => (event) => {
    wanted.chosen[event.target.checked ? "add" : "delete"](run.id);
    showCompare();
  };
  const showCompare = () => {
    compare.hidden = wanted.chosen.size < 2;
    compare.textContent = `Compare ${wanted.chosen.size} runs`;
    compare.href = `#/compare?runs=${[...wanted.chosen].join(",")}`;
  };
  const picture = (run) => {
    const key = `${run.id} ${run.iterations}`;
    if (!thumbnails.has(key)) thumbnails.set(key, thumbnail(source, run.id, `Map of ${run.name}`));
    return thumbnails.get(key);
  };

  const line = (run) =>
    el(
      "tr",
      {},
      el(
        "td",
        { class: "pick" },
        el("input", {
          type: "checkbox",
          checked: wanted.chosen.has(run.id),
          onchange: pick(run),
          "aria-label": `Choose ${run.name} for a comparison`,
        }),
      ),
      el(
        "td",
        { class: "small-map" },
        run.qd_score === null
          ? null
          : el("a", { href: `#/run/${run.id}`, tabindex: -1, "aria-hidden": "true" }, picture(run)),
      ),
      COLUMNS.map(([key, heading, words, numeric]) =>
        el("td", { class: `${key} ${numeric ? "number" : ""}`, "data-heading": heading }, cellOf(run, key, words)),
      ),
    );

  function draw() {
    replace(
      head,
      el("th", {}, el("span", { class: "unseen" }, "Compare")),
      el("th", {}, el("span", { class: "unseen" }, "Map")),
      COLUMNS.map(([key, heading, , numeric]) =>
        el(
          "th",
          {
            class: numeric ? "number" : "",
            "aria-sort": wanted.sort === key ? (wanted.down ? "descending" : "ascending") : "none",
          },
          el(
            "button",
            { onclick: sortBy(key) },
            heading,
            el("span", { "aria-hidden": "true", class: "arrow" }, wanted.sort === key ? (wanted.down ? "▾" : "▴") : ""),
          ),
        ),
      ),
    );
    const seen = runs.filter((run) => fits(run, wanted)).sort(order(wanted));
    replace(body, seen.map(line));
    summary.textContent =
      seen.length === runs.length
        ? `${count(runs.length)} in ${first.root}`
        : `${count(seen.length)} of ${count(runs.length)} in ${first.root}`;
  }

  const timer = setInterval(async () => {
    if (document.hidden) return;
    const answer = await source.runs().catch(() => null);
    if (!answer || JSON.stringify(answer.runs) === JSON.stringify(runs) || body.contains(document.activeElement))
      return;
    runs = answer.runs;
    draw();
  }, POLL);
  draw();

  const states = ["all", "running", "finished", "stopped", "broken"];
  const nothing = el(
    "div",
    { class: "card hint" },
    el("p", {}, "Nothing to see here yet. Make a run and it appears by itself:"),
    el("pre", {}, "dqd run --domain arm --out runs/arm"),
  );
  const element = el(
    "div",
    { class: "runs" },
    el(
      "div",
      { class: "page-head" },
      el("div", {}, el("h1", {}, "Runs"), summary),
      el(
        "div",
        { class: "tools" },
        search,
        choice("State", states, "all", (state) => {
          wanted.state = state;
          draw();
        }),
        compare,
      ),
    ),
    runs.length ? el("div", { class: "card table" }, el("table", {}, el("thead", {}, head), body)) : nothing,
  );
  return { element, title: "Runs", close: () => clearInterval(timer) };
}

function cellOf(run, key, words) {
  if (key === "name")
    return run.state === "broken" || run.qd_score === null
      ? el("span", { title: run.why }, run.name)
      : el("a", { href: `#/run/${run.id}` }, run.name);
  if (key === "state") return badge(run);
  return words(run);
}

export function badge(run) {
  return el("span", { class: `badge ${run.state}`, title: run.why || run.state }, run.state);
}

function fits(run, { text, state }) {
  const words = `${run.name} ${run.domain} ${run.algorithm} seed ${run.seed}`.toLowerCase();
  return (state === "all" || run.state === state) && text.split(/\s+/).every((part) => words.includes(part));
}

const order =
  ({ sort, down }) =>
  (a, b) => {
    const [one, other] = [a[sort], b[sort]];
    if (one === other) return a.name.localeCompare(b.name);
    if (one === null || one === undefined) return 1;
    if (other === null || other === undefined) return -1;
    const sign = typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
    return down ? -sign : sign;
  };
