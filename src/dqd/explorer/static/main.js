// Which page is shown. The address behind # names it, so that every run and every cell has a link.

import { comparePage } from "./compare.js";
import { el, replace } from "./dom.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { embedded, open } from "./source.js";
import * as theme from "./theme.js";

const page = document.getElementById("page");
let close = () => {};
let shown = 0;

export function route(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const [, name = "", id = ""] = path.split("/");
  return { name, id: decodeURIComponent(id), query: new URLSearchParams(query) };
}

async function show(source) {
  const { name, id, query } = route(location.hash);
  const turn = ++shown;
  close();
  close = () => {};
  replace(page, el("p", { class: "hint wait" }, "Reading…"));
  try {
    const made = await pageOf(source, name, id, query);
    if (turn !== shown) return made.close();
    close = made.close;
    document.title = `${made.title} · dqd`;
    replace(page, made.element);
    made.shown?.();
  } catch (error) {
    replace(
      page,
      el(
        "section",
        { class: "card sorry" },
        el("h1", {}, "This cannot be shown"),
        el("p", {}, error.message),
        el("a", { href: "#/" }, "All runs"),
      ),
    );
  }
}

async function pageOf(source, name, id, query) {
  if (name === "run") return runPage(source, id, query);
  if (name === "compare") return comparePage(source, query);
  const list = await source.runs();
  if (list.runs.length === 1 && list.runs[0].state !== "broken") return runPage(source, list.runs[0].id, query);
  return runsPage(source, list);
}

function header() {
  const words = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
  const button = el(
    "button",
    { class: "quiet", onclick: () => (button.textContent = words[theme.next()]) },
    words[theme.current()],
  );
  const mark = el("span", { class: "mark", "aria-hidden": "true" }, el("i"), el("i"), el("i"), el("i"));
  replace(
    document.getElementById("top"),
    el(embedded() ? "span" : "a", { href: embedded() ? null : "#/", class: "brand" }, mark, "dqd", el("span", {}, "explorer")),
    button,
  );
}

theme.apply();
header();
open().then((source) => {
  window.addEventListener("hashchange", () => show(source));
  show(source);
});
