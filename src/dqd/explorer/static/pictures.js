// Pictures of solutions: drawn here, or cut from the pages that `dqd render` made. Others have none.

const MOST = 512; // solutions asked for at once
const KEPT = 4096; // solutions
const COLUMNS = 16; // of a page
const PAGES = 48; // kept
const RENDERERS = { Arm: drawArm };

// What draws the elites of a run, or null. Each has
//   draw(context, row, box, style, inCell): whether it could; if not, `want` asks for what is missing
//   want(rows, then): `then` is called when something has come
//   from: the screen pixels of a cell from which a picture is more than a blot
export function picturesOf(run, source, cells, solutionsOf) {
  const { kind, numbers, pictures } = run.archive;
  if (pictures) return new Atlas(run.id, source, cells);
  return Object.hasOwn(RENDERERS, kind) && numbers ? new Drawn(RENDERERS[kind], solutionsOf) : null;
}

// Solutions come when they are first wanted, and those looked at last are kept.
class Drawn {
  constructor(renderer, solutionsOf) {
    Object.assign(this, { renderer, solutionsOf, kept: new Map(), asked: new Set(), from: 34 });
  }

  draw(context, row, box, style, inCell) {
    const solution = this.kept.get(row);
    if (solution) this.renderer(context, solution, box, style, inCell);
    return Boolean(solution);
  }

  want(rows, then) {
    const fresh = rows.filter((row) => !this.asked.has(row)).slice(0, MOST);
    if (!fresh.length) return;
    fresh.forEach((row) => this.asked.add(row));
    this.solutionsOf(fresh).then(
      (solutions) => {
        fresh.forEach((row, i) => this.kept.set(row, solutions[i]));
        for (const row of this.kept.keys()) {
          if (this.kept.size <= KEPT) break;
          this.kept.delete(row);
          this.asked.delete(row);
        }
        then();
      },
      () => {},
    );
  }
}

// Pages come when a picture on them is first wanted.
class Atlas {
  constructor(id, source, cells) {
    Object.assign(this, { id, source, pages: new Map(), slot: null, from: 16 });
    this.ready = source.slots(id).then(({ cell, slot }) => {
      const slotOf = new Map(Array.from(cell, (number, i) => [number, slot[i]])); // there may be new elites by now
      this.slot = Int32Array.from(cells, (number) => slotOf.get(number) ?? -1);
    });
  }

  draw(context, row, { x, y, width, height }, style, inCell) {
    const slot = this.slot ? this.slot[row] : -1;
    const page = this.pages.get(slot >> 8);
    if (slot < 0) return this.slot !== null; // none is coming
    if (!page || page instanceof Promise) return false;
    const side = Math.min(width, height) * (inCell ? 0.94 : 1);
    const level = page.findLast((each) => each.width / COLUMNS >= side) ?? page[0];
    const size = level.width / COLUMNS;
    const [left, top] = [(slot & 255) % COLUMNS, (slot & 255) >> 4];
    context.imageSmoothingEnabled = side > size; // a level below is smooth already, and quicker as it is
    context.drawImage(
      level,
      left * size,
      top * size,
      size,
      size,
      x + (width - side) / 2,
      y + (height - side) / 2,
      side,
      side,
    );
    return true;
  }

  want(rows, then) {
    if (!this.slot) return this.ready.then(then);
    for (const number of new Set(rows.map((row) => this.slot[row] >> 8))) {
      if (this.pages.has(number)) continue;
      const coming = this.source.picturePage(this.id, number).then(levels);
      this.pages.set(number, coming);
      coming.then(
        (page) => {
          this.pages.set(number, page);
          this.forget();
          then();
        },
        () => this.pages.delete(number),
      );
    }
  }

  // The pages that came first go first.
  forget() {
    for (const [number, page] of this.pages) {
      if (this.pages.size <= PAGES) break;
      if (page instanceof Promise) continue;
      page.forEach((level) => level.close());
      this.pages.delete(number);
    }
  }
}

// A page as it is, and smaller ones for smaller cells.
async function levels(page) {
  const smaller = [2, 4].map((by) =>
    createImageBitmap(page, { resizeWidth: page.width / by, resizeHeight: page.height / by, resizeQuality: "medium" }),
  );
  return [page, ...(await Promise.all(smaller))];
}

// An arm of n links of length 1. Alone it is drawn within the circle that it can reach; in a cell, as large as fits.
function drawArm(context, angles, { x, y, width, height }, style, inCell) {
  const side = Math.min(width, height);
  const path = posture(angles);
  const [left, right, low, high] = inCell
    ? around(path)
    : [-angles.length, angles.length, -angles.length, angles.length];
  const unit = (side * (inCell ? 0.72 : 0.92)) / Math.max(right - left, high - low, 1e-9);
  const points = path.map(([a, b]) => [
    x + width / 2 + (a - (left + right) / 2) * unit,
    y + height / 2 - (b - (low + high) / 2) * unit,
  ]);
  const thick = inCell ? Math.max(1.4, side / 34) : Math.max(1.4, side / 64);
  context.save();
  if (!inCell) disc(context, [x + width / 2, y + height / 2], side * 0.46, style.getPropertyValue("--disc"));
  context.lineJoin = context.lineCap = "round";
  if (inCell) stroke(context, points, thick * 2.2, style.getPropertyValue("--ink"));
  stroke(context, points, thick, style.getPropertyValue(inCell ? "--chalk" : "--limb"));
  if (!inCell && angles.length <= 60)
    points.slice(1, -1).forEach((point) => disc(context, point, thick * 0.85, style.getPropertyValue("--limb")));
  disc(context, points[0], thick * 1.5, style.getPropertyValue(inCell ? "--ink" : "--text"));
  if (inCell) disc(context, points[points.length - 1], thick * 2.4, style.getPropertyValue("--ink"));
  disc(
    context,
    points[points.length - 1],
    thick * (inCell ? 1.8 : 2),
    style.getPropertyValue(inCell ? "--hand-chalk" : "--hand"),
  );
  context.restore();
}

// The base and the end of every link.
function posture(angles) {
  const path = [[0, 0]];
  let [angle, x, y] = [0, 0, 0];
  for (const turn of angles) {
    angle += turn;
    x += Math.cos(angle);
    y += Math.sin(angle);
    path.push([x, y]);
  }
  return path;
}

function around(path) {
  const [x, y] = [0, 1].map((i) => path.map((point) => point[i]));
  const ends = (values) => [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  return [...ends(x), ...ends(y)];
}

function stroke(context, points, width, colour) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

function disc(context, [x, y], radius, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}
