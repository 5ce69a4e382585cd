// One run as one file that anybody can open: the size is told before.

import { el, replace } from "./dom.js";
import { bytes } from "./numbers.js";

export function shareButton(source, run) {
  const list = el("div", { class: "menu-list" });
  const menu = el(
    "details",
    { class: "menu", ontoggle: () => menu.open && offer(source, run, list) },
    el("summary", { class: "button" }, "Save as one HTML file"),
    list,
  );
  return menu;
}

async function offer(source, run, list) {
  replace(list, el("p", { class: "soft" }, "Measuring…"));
  const kinds = [
    [true, "with the solutions"],
    [false, "without the solutions"],
  ].filter(([solutions]) => !solutions || run.archive.numbers);
  const sizes = await Promise.all(kinds.map(([solutions]) => sizeOf(source.page(run.id, solutions))));
  replace(
    list,
    kinds.map(([solutions, words], i) =>
      el(
        "a",
        { href: source.page(run.id, solutions), download: `${run.name.replace(/[^\w-]+/g, "-")}.html` },
        `${words}, `,
        el("strong", {}, sizes[i]),
      ),
    ),
    el("p", { class: "soft" }, "Opens in any browser, without a server and without a network."),
  );
}

async function sizeOf(address) {
  const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
  return answer?.ok ? bytes(Number(answer.headers.get("content-length"))) : "size unknown";
}
