// Which part of the map is seen, and how large. Map coordinates count pixels of the map, v upward.

const DEEPEST = 400; // screen pixels of one cell

export class Camera {
  constructor() {
    this.frame = { left: 0, top: 0, width: 1, height: 1 };
    this.size = { columns: 1, rows: 1 };
    this.zoom = 1;
    this.u = this.v = 0; // lower left corner
  }

  // Screen pixels of one pixel of the map.
  get cellWidth() {
    return (this.frame.width / this.size.columns) * this.zoom;
  }

  get cellHeight() {
    return (this.frame.height / this.size.rows) * this.zoom;
  }

  fit() {
    this.zoom = 1;
    this.u = this.v = 0;
  }

  toScreen(u, v) {
    const { left, top, height } = this.frame;
    return [left + (u - this.u) * this.cellWidth, top + height - (v - this.v) * this.cellHeight];
  }

  toMap(x, y) {
    const { left, top, height } = this.frame;
    return [this.u + (x - left) / this.cellWidth, this.v + (top + height - y) / this.cellHeight];
  }

  // The map's pixel at a place on the screen, or null beside the map.
  pixelAt(x, y) {
    const { left, top, width, height } = this.frame;
    if (x < left || y < top || x >= left + width || y >= top + height) return null;
    const [u, v] = this.toMap(x, y).map(Math.floor);
    return u < 0 || v < 0 || u >= this.size.columns || v >= this.size.rows ? null : { u, v };
  }

  // Larger or smaller, with the place under the pointer staying where it is.
  zoomAt(factor, x, y) {
    const [u, v] = this.toMap(x, y);
    const limit = Math.max(
      1,
      DEEPEST / Math.min(this.frame.width / this.size.columns, this.frame.height / this.size.rows),
    );
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), limit);
    const [nowU, nowV] = this.toMap(x, y);
    this.move(u - nowU, v - nowV);
  }

  move(du, dv) {
    const { columns, rows } = this.size;
    this.u = Math.min(Math.max(this.u + du, 0), columns - columns / this.zoom);
    this.v = Math.min(Math.max(this.v + dv, 0), rows - rows / this.zoom);
  }

  // Bring a pixel of the map into sight.
  show(u, v) {
    const [wide, high] = [this.size.columns / this.zoom, this.size.rows / this.zoom];
    const past = (place, first, length) => Math.min(0, place - first) + Math.max(0, place + 1 - (first + length));
    this.move(past(u, this.u, wide), past(v, this.v, high));
  }

  centre(u, v) {
    const [wide, high] = [this.size.columns / this.zoom, this.size.rows / this.zoom];
    this.move(u + 0.5 - wide / 2 - this.u, v + 0.5 - high / 2 - this.v);
  }
}
