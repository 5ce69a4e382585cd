// Where the runs come from: a server that reads a folder, or this very file.

import { read } from "./tensors.js";

export const embedded = () => document.getElementById("embedded");

export async function open() {
  return embedded() ? unpacked(embedded()) : server;
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  const words = await answer.json().then(
    (content) => content.detail,
    () => null,
  );
  throw new Error(typeof words === "string" ? words : `the server answered ${answer.status}`);
}

const json = async (path) => (await ask(path)).json();
const arrays = async (path) => read(await (await ask(path)).arrayBuffer());
const of = (id, what) => `/api/runs/${encodeURIComponent(id)}/${what}`;

const server = {
  live: true,
  runs: () => json("/api/runs"),
  run: (id) => json(`/api/runs/${encodeURIComponent(id)}`),
  stamp: (id) => json(of(id, "stamp")),
  curves: (id) => json(of(id, "curves")),
  views: (id) => json(of(id, "views")),
  view: (id, step) => arrays(of(id, `views/${step}`)),
  elites: (id) => arrays(of(id, "elites")),
  thumbnail: async (id) => (await arrays(of(id, "thumbnail"))).picture,
  solutions: async (id, cells) => (await arrays(of(id, `solutions?cells=${cells.join(",")}`))).solutions,
  slots: (id) => arrays(of(id, "pictures")),
  picturePage: async (id, page) => createImageBitmap(await (await ask(of(id, `pictures/${page}`))).blob()),
  compare: (ids) => json(`/api/compare?runs=${ids.map(encodeURIComponent).join(",")}`),
  page: (id, solutions) => of(id, `page.html?solutions=${solutions ? 1 : 0}`),
};

// A run in a file of its own. The contents are packed, so that the file stays small.
async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const content = read(await new Response(stream).arrayBuffer());
  const about = JSON.parse(new TextDecoder().decode(content.about));
  const rowOf = new Map(Array.from(content.cell, (cell, row) => [cell, row]));
  return {
    live: false,
    runs: async () => ({ root: about.run.name, runs: [about.run] }),
    run: async () => about.run,
    curves: async () => about.curves,
    views: async () => about.views,
    view: async (id, step) => ({ cell: content[`view-${step}-cell`], objective: content[`view-${step}-objective`] }),
    elites: async () => content,
    slots: async () => content,
    picturePage: (id, page) => createImageBitmap(new Blob([content[`page-${page}`]], { type: "image/png" })),
    solutions: async (id, cells) => {
      if (!content.solutions) throw new Error("this file was saved without the solutions");
      const n = content.solutions.shape[1];
      const rows = new content.solutions.constructor(cells.length * n);
      cells.forEach((cell, i) =>
        rows.set(content.solutions.subarray(rowOf.get(cell) * n, (rowOf.get(cell) + 1) * n), i * n),
      );
      rows.shape = [cells.length, n];
      return rows;
    },
  };
}
