// Light or dark: as the system has it, unless one was chosen. What was chosen is remembered where that is allowed.

const NAMES = ["auto", "light", "dark"];
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
systemIsDark.addEventListener("change", () => apply());

export function recall(name, fallback) {
  try {
    return localStorage.getItem(`dqd-${name}`) ?? fallback;
  } catch {
    return fallback;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`dqd-${name}`, value);
  } catch {
    // a page from a file may have no memory
  }
}

export function current() {
  const name = recall("theme", "auto");
  return NAMES.includes(name) ? name : "auto";
}

export function apply(name = current()) {
  const system = systemIsDark.matches ? "dark" : "light";
  document.documentElement.dataset.theme = name === "auto" ? system : name;
  document.dispatchEvent(new Event("theme"));
}

export function next() {
  const name = NAMES[(NAMES.indexOf(current()) + 1) % NAMES.length];
  remember("theme", name);
  apply(name);
  return name;
}

// The colour of an empty cell, as bytes.
export function emptyColour() {
  const text = getComputedStyle(document.documentElement).getPropertyValue("--empty").trim();
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}
