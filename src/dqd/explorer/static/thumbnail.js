// A small map for lists.

import { table } from "./colours.js";
import { el } from "./dom.js";

const EMPTY = 255;

export function thumbnail(source, id, label) {
  const canvas = el("canvas", { class: "thumbnail", role: "img", "aria-label": label, width: 56, height: 56 });
  const observer = new IntersectionObserver((seen) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    source.thumbnail(id).then(
      (picture) => paint(canvas, picture),
      () => canvas.classList.add("none"),
    );
  });
  observer.observe(canvas);
  return canvas;
}

function paint(canvas, picture) {
  const [rows, columns] = picture.shape;
  [canvas.width, canvas.height] = [columns, rows];
  const colours = table("tide");
  const image = new ImageData(columns, rows);
  picture.forEach((value, i) => {
    const at = 4 * ((rows - 1 - Math.floor(i / columns)) * columns + (i % columns));
    if (value !== EMPTY) image.data.set([...colours.subarray(3 * value, 3 * value + 3), 255], at);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
