// The map on its canvas: coloured cells, pictures in them where they are large enough, axes, and what is chosen.

import { Camera } from "./camera.js";
import { listen } from "./gestures.js";
import { figure, ticks } from "./numbers.js";

const MARGIN = { left: 66, right: 14, top: 12, bottom: 46 };
const STRIP = 300; // height of a map of one measure
const LINES_FROM = 9;

export class MapView {
  // `heard` is told what people do: hover(pixel), choose(row), box(rows).
  constructor(heard, label) {
    this.heard = heard;
    this.camera = new Camera();
    this.canvas = document.createElement("canvas");
    this.canvas.className = "map";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", label);
    this.bitmap = document.createElement("canvas");
    this.projection = null;
    this.chosen = -1;
    this.hovered = null;
    this.rubber = null; // a box being drawn
    this.corner = null; // the cell to which keys have drawn it
    this.pictures = null; // draws the picture of a row, or says that it is not there yet
    this.labels = ["", ""];
    this.names = [[], []]; // at 0, 1, ..., where a measure is a category
    this.linked = []; // maps that look through the same camera
    this.waiting = false;
    listen(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
  }

  close() {
    this.observer.disconnect();
  }

  // A new map. The place that is looked at stays, if the map has the same size.
  show(projection, labels, names = [[], []]) {
    const { columns, rows } = projection;
    const other = columns !== this.camera.size.columns || rows !== this.camera.size.rows;
    this.projection = projection;
    this.labels = labels;
    this.names = names;
    this.camera.size = { columns, rows };
    if (other) this.camera.fit();
    this.canvas.classList.toggle("strip", rows === 1);
    this.outline = null;
    this.resize();
  }

  // Colour every pixel: `colourOf(row)` is an index into the table, or -1 for none.
  paint(colours, colourOf, empty) {
    const { columns, rows, rowOf } = this.projection;
    [this.bitmap.width, this.bitmap.height] = [columns, rows];
    const image = new ImageData(columns, rows);
    const words = new Uint32Array(image.data.buffer);
    const packed = pack(colours);
    const nothing = pack(Uint8ClampedArray.from(empty))[0];
    for (let v = 0; v < rows; v++) {
      const line = (rows - 1 - v) * columns;
      for (let u = 0; u < columns; u++) {
        const row = rowOf[v * columns + u];
        const index = row < 0 ? -1 : colourOf(row);
        words[line + u] = index < 0 ? nothing : packed[index];
      }
    }
    this.bitmap.getContext("2d").putImageData(image, 0, 0);
    this.draw();
  }

  choose(row) {
    if (row === this.chosen) return;
    this.chosen = row;
    this.outline = null;
    this.draw();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.canvas.getBoundingClientRect();
    if (width < 50) return;
    const tall = this.camera.size.rows === 1 ? STRIP + MARGIN.top + MARGIN.bottom : height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(tall * ratio);
    const inner = { width: width - MARGIN.left - MARGIN.right, height: tall - MARGIN.top - MARGIN.bottom };
    if (this.camera.size.rows > 1) inner.width = inner.height = Math.min(inner.width, inner.height);
    this.camera.frame = { left: MARGIN.left, top: MARGIN.top, ...inner };
    this.draw();
  }

  // At most once per frame.
  draw() {
    if (this.waiting) return;
    this.waiting = true;
    this.linked.forEach((other) => other.draw());
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.projection) this.render();
    });
  }

  render() {
    const ratio = window.devicePixelRatio || 1;
    const style = getComputedStyle(this.canvas);
    const context = this.canvas.getContext("2d");
    const { left, top, width, height } = this.camera.frame;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    this.cells(context);
    this.lines(context, style);
    this.drawPictures(context, style);
    this.marks(context, style);
    context.restore();
    this.axes(context, style);
    this.canvas.style.touchAction = this.camera.zoom > 1 ? "none" : "pan-y";
  }

  cells(context) {
    const { columns, rows } = this.projection;
    const [x, y] = this.camera.toScreen(0, rows);
    const [width, height] = [columns * this.camera.cellWidth, rows * this.camera.cellHeight];
    context.imageSmoothingEnabled = Math.min(this.camera.cellWidth, this.camera.cellHeight) < 1;
    context.drawImage(this.bitmap, x, y, width, height);
  }

  // Hair lines between cells that are large.
  lines(context, style) {
    const size = Math.min(this.camera.cellWidth, this.camera.cellHeight);
    if (size < LINES_FROM || !this.projection.squares || this.projection.rows === 1) return;
    context.strokeStyle = style.getPropertyValue("--map-line");
    context.globalAlpha = Math.min(1, (size - LINES_FROM) / 10);
    context.lineWidth = 1;
    context.beginPath();
    const { first, last } = this.seen();
    for (let u = first.u; u <= last.u + 1; u++)
      line(context, this.camera.toScreen(u, first.v), this.camera.toScreen(u, last.v + 1));
    for (let v = first.v; v <= last.v + 1; v++)
      line(context, this.camera.toScreen(first.u, v), this.camera.toScreen(last.u + 1, v));
    context.stroke();
    context.globalAlpha = 1;
  }

  // The first and the last pixel of the map that are in sight.
  seen() {
    const { left, top, width, height } = this.camera.frame;
    const { columns, rows } = this.camera.size;
    const [lowU, lowV] = this.camera.toMap(left, top + height).map(Math.floor);
    const [highU, highV] = this.camera.toMap(left + width, top).map(Math.ceil);
    return {
      first: { u: Math.max(lowU, 0), v: Math.max(lowV, 0) },
      last: { u: Math.min(highU, columns) - 1, v: Math.min(highV, rows) - 1 },
    };
  }

  drawPictures(context, style) {
    const { cellWidth, cellHeight } = this.camera;
    const size = Math.min(cellWidth, cellHeight);
    if (!this.pictures || size < this.pictures.from || !this.projection.squares) return;
    const { first, last } = this.seen();
    const wanted = [];
    context.globalAlpha = Math.min(1, (size - this.pictures.from) / 16);
    for (let v = first.v; v <= last.v; v++) {
      for (let u = first.u; u <= last.u; u++) {
        const row = this.projection.rowOf[v * this.projection.columns + u];
        if (row < 0) continue;
        const [x, y] = this.camera.toScreen(u, v + 1);
        if (!this.pictures.draw(context, row, { x, y, width: cellWidth, height: cellHeight }, style, true))
          wanted.push(row);
      }
    }
    context.globalAlpha = 1;
    if (wanted.length) this.pictures.want(wanted, () => this.draw());
  }

  marks(context, style) {
    this.outline ??= outlineOf(this.projection, this.chosen);
    edge(context, this.camera, this.outline, style.getPropertyValue("--mark-back"), 4);
    edge(context, this.camera, this.outline, style.getPropertyValue("--mark"), 2);
    this.ring(context, style);
    if (this.hovered) edge(context, this.camera, squareOf(this.hovered), style.getPropertyValue("--mark"), 1);
    if (this.rubber) {
      const { x, y, width, height } = this.rubber;
      context.strokeStyle = style.getPropertyValue("--mark");
      context.setLineDash([5, 4]);
      context.lineWidth = 1.5;
      context.strokeRect(x, y, width, height);
      context.setLineDash([]);
    }
  }

  // A cell of few pixels is hard to find, so a ring is drawn around it.
  ring(context, style) {
    if (
      !this.outline.length ||
      !this.projection.squares ||
      Math.min(this.camera.cellWidth, this.camera.cellHeight) > 14
    )
      return;
    const [[u, v]] = this.outline;
    const [x, y] = this.camera.toScreen(u + 0.5, v + 0.5);
    for (const [colour, width] of [
      ["--mark-back", 5],
      ["--mark", 2],
    ]) {
      context.strokeStyle = style.getPropertyValue(colour);
      context.lineWidth = width;
      context.beginPath();
      context.arc(x, y, 11, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  axes(context, style) {
    const { left, top, width, height } = this.camera.frame;
    const [lowX, highX, lowY, highY] = this.projection.extent;
    const { columns, rows } = this.camera.size;
    const toX = (u) => lowX + (u / columns) * (highX - lowX);
    const toY = (v) => lowY + (v / rows) * (highY - lowY);
    context.strokeStyle = style.getPropertyValue("--line");
    context.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
    context.fillStyle = style.getPropertyValue("--soft");
    context.font = `12px ${style.fontFamily}`;
    context.textAlign = "center";
    const [u0, v0] = this.camera.toMap(left, top + height);
    const [u1, v1] = this.camera.toMap(left + width, top);
    for (const value of this.ticks(0, toX(u0), toX(u1), width / 90)) {
      const [x] = this.camera.toScreen(((value - lowX) / (highX - lowX)) * columns, 0);
      context.fillText(this.word(0, value), x, top + height + 16, 86);
      context.fillRect(x - 0.5, top + height, 1, 4);
    }
    context.fillText(this.labels[0], left + width / 2, top + height + 36, width);
    if (rows === 1) return;
    context.textAlign = "right";
    for (const value of this.ticks(1, toY(v0), toY(v1), height / 70)) {
      const [, y] = this.camera.toScreen(0, ((value - lowY) / (highY - lowY)) * rows);
      context.fillText(this.word(1, value), left - 7, y + 4, left - 24);
      context.fillRect(left - 4, y - 0.5, 4, 1);
    }
    context.save();
    context.translate(13, top + height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(this.labels[1], 0, 0, height);
    context.restore();
  }

  // Where an axis is marked, and with what.
  ticks(axis, low, high, most) {
    const names = this.names[axis] ?? [];
    return names.length ? [...names.keys()].filter((i) => low <= i && i <= high) : ticks(low, high, most);
  }

  word(axis, value) {
    return this.names[axis]?.[value] ?? figure(value);
  }

  rowAt(pixel) {
    return pixel === null ? -1 : this.projection.rowOf[pixel.v * this.projection.columns + pixel.u];
  }

  // The measures in the middle of a pixel.
  measuresAt({ u, v }) {
    const [left, right, bottom, top] = this.projection.extent;
    const { columns, rows } = this.camera.size;
    return [left + ((u + 0.5) / columns) * (right - left), bottom + ((v + 0.5) / rows) * (top - bottom)];
  }

  // From the chosen cell to the next one in a direction.
  step(du, dv) {
    const { columns, rows, rowOf } = this.projection;
    this.outline ??= outlineOf(this.projection, this.chosen);
    let [u, v] = this.outline.length ? this.outline[this.outline.length >> 1] : [columns >> 1, rows >> 1];
    for (u += du, v += dv; u >= 0 && v >= 0 && u < columns && v < rows; u += du, v += dv) {
      const row = rowOf[v * columns + u];
      if (row >= 0 && row !== this.chosen) {
        this.camera.show(u, v);
        this.heard.choose(row);
        return;
      }
    }
  }

  zoom(factor) {
    const { left, top, width, height } = this.camera.frame;
    const [u, v] = this.outline?.[0] ?? [NaN, NaN];
    const [x, y] = Number.isNaN(u) ? [left + width / 2, top + height / 2] : this.camera.toScreen(u + 0.5, v + 0.5);
    const seen = x > left && x < left + width && y > top && y < top + height;
    this.camera.zoomAt(factor, seen ? x : left + width / 2, seen ? y : top + height / 2);
    this.draw();
  }
}

function pack(colours) {
  const packed = new Uint32Array(colours.length / 3);
  const bytes = new Uint8Array(packed.buffer);
  for (let i = 0; i < packed.length; i++)
    bytes.set([colours[3 * i], colours[3 * i + 1], colours[3 * i + 2], 255], 4 * i);
  return packed;
}

// The pixels of a row.
function outlineOf({ rowOf, columns }, row) {
  const pixels = [];
  if (row < 0) return pixels;
  for (let i = rowOf.indexOf(row); i >= 0; i = rowOf.indexOf(row, i + 1))
    pixels.push([i % columns, Math.floor(i / columns)]);
  return pixels;
}

const squareOf = ({ u, v }) => [[u, v]];

// The border of a set of pixels.
function edge(context, camera, pixels, colour, width) {
  if (!pixels.length) return;
  const inside = new Set(pixels.map(([u, v]) => `${u},${v}`));
  const within = (u, v) => inside.has(`${u},${v}`);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = "square";
  context.beginPath();
  for (const [u, v] of pixels) {
    if (!within(u - 1, v)) line(context, camera.toScreen(u, v), camera.toScreen(u, v + 1));
    if (!within(u + 1, v)) line(context, camera.toScreen(u + 1, v), camera.toScreen(u + 1, v + 1));
    if (!within(u, v - 1)) line(context, camera.toScreen(u, v), camera.toScreen(u + 1, v));
    if (!within(u, v + 1)) line(context, camera.toScreen(u, v + 1), camera.toScreen(u + 1, v + 1));
  }
  context.stroke();
}

function line(context, from, to) {
  context.moveTo(...from);
  context.lineTo(...to);
}
