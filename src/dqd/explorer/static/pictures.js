// Pictures of solutions, drawn here. A kind of problem that is not listed has none.

const MOST = 512; // solutions asked for at once
const KEPT = 4096; // solutions

const RENDERERS = { Arm: drawArm };

export const hasPicture = (kind) => Object.hasOwn(RENDERERS, kind);

export function drawPicture(kind, context, solution, box, style, inCell = false) {
  RENDERERS[kind](context, solution, box, style, inCell);
}

// The pictures of a run. Solutions come when they are first wanted, and those looked at last are kept.
export class Pictures {
  constructor(kind, solutionsOf) {
    this.kind = kind;
    this.solutionsOf = solutionsOf; // rows -> promise of an array of solutions
    this.kept = new Map();
    this.asked = new Set();
  }

  draw(context, row, box, style) {
    const solution = this.kept.get(row);
    if (solution) drawPicture(this.kind, context, solution, box, style, true);
    return Boolean(solution);
  }

  want(rows, then) {
    const fresh = rows.filter((row) => !this.asked.has(row)).slice(0, MOST);
    if (!fresh.length) return;
    fresh.forEach((row) => this.asked.add(row));
    this.solutionsOf(fresh).then((solutions) => {
      fresh.forEach((row, i) => this.kept.set(row, solutions[i]));
      for (const row of this.kept.keys()) {
        if (this.kept.size <= KEPT) break;
        this.kept.delete(row);
        this.asked.delete(row);
      }
      then();
    }, () => {});
  }
}

// An arm of n links of length 1. Alone it is drawn within the circle that it can reach; in a cell, as large as fits.
function drawArm(context, angles, { x, y, width, height }, style, inCell) {
  const side = Math.min(width, height);
  const path = posture(angles);
  const [left, right, low, high] = inCell ? around(path) : [-angles.length, angles.length, -angles.length, angles.length];
  const unit = (side * (inCell ? 0.72 : 0.92)) / Math.max(right - left, high - low, 1e-9);
  const points = path.map(([a, b]) => [x + width / 2 + (a - (left + right) / 2) * unit, y + height / 2 - (b - (low + high) / 2) * unit]);
  const thick = inCell ? Math.max(1.4, side / 34) : Math.max(1.4, side / 64);
  context.save();
  if (!inCell) disc(context, [x + width / 2, y + height / 2], side * 0.46, style.getPropertyValue("--disc"));
  context.lineJoin = context.lineCap = "round";
  if (inCell) stroke(context, points, thick * 2.2, style.getPropertyValue("--ink"));
  stroke(context, points, thick, style.getPropertyValue(inCell ? "--chalk" : "--limb"));
  if (!inCell && angles.length <= 60) points.slice(1, -1).forEach((point) => disc(context, point, thick * 0.85, style.getPropertyValue("--limb")));
  disc(context, points[0], thick * 1.5, style.getPropertyValue(inCell ? "--ink" : "--text"));
  if (inCell) disc(context, points[points.length - 1], thick * 2.4, style.getPropertyValue("--ink"));
  disc(context, points[points.length - 1], thick * (inCell ? 1.8 : 2), style.getPropertyValue(inCell ? "--hand-chalk" : "--hand"));
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
