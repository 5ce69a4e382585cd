// Several runs side by side.

import { el } from "./dom.js";

export async function comparePage() {
  return { element: el("p", {}, "Not here yet."), title: "Compare", close: () => {} };
}
