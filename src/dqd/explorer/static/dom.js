// Elements. Whatever comes from a run is set as text, never as markup.

export function el(tag, properties = {}, ...children) {
  const element =
    tag === "svg" || properties.svg
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const shape = (tag, properties = {}, ...children) => el(tag, { svg: true, ...properties }, ...children);

function set(element, name, value) {
  if (name === "svg" || value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") for (const [key, item] of Object.entries(value)) element.style.setProperty(key, item);
  else if (["value", "checked", "disabled", "selected"].includes(name)) element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// A choice with its label: options are [value, words] or words alone.
export function choice(label, options, value, onchange) {
  const items = options.map((option) => {
    const [key, words] = Array.isArray(option) ? option : [option, option];
    return el("option", { value: key, selected: key === value }, words);
  });
  const select = el("select", { onchange: () => onchange(select.value) }, items);
  select.value = value;
  return el("label", { class: "choice" }, el("span", {}, label), select);
}

// A page inside a notebook has none.
export const hasAddress = () => location.protocol !== "about:";

// For those who do not see the page.
export function say(words) {
  document.getElementById("say").textContent = words;
}

export function save(name, content, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  say(button.textContent);
  setTimeout(() => (button.textContent = before), 1500);
}
