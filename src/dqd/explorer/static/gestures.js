// Pointer, wheel and keys of a map.

const CLICK = 5; // screen pixels that a finger may slip

export function listen(map) {
  const { canvas } = map;
  const fingers = new Map();
  let began = null;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  canvas.addEventListener("pointerdown", (event) => {
    const at = place(event);
    fingers.set(event.pointerId, at);
    began = { ...at, moved: false, box: event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) return hover(map, at);
    began.moved ||= Math.hypot(at.x - began.x, at.y - began.y) > CLICK;
    if (began.box) map.rubber = between(began, at);
    else if (fingers.size === 2) pinch(map.camera, fingers, event.pointerId, at);
    else if (began.moved)
      map.camera.move((before.x - at.x) / map.camera.cellWidth, (at.y - before.y) / map.camera.cellHeight);
    fingers.set(event.pointerId, at);
    map.draw();
  });

  const release = (event) => {
    if (!fingers.delete(event.pointerId) || fingers.size) return;
    if (event.type === "pointerup" && map.rubber && began.moved) map.heard.box(rowsIn(map, map.rubber));
    else if (event.type === "pointerup" && !began.moved) click(map, place(event));
    map.rubber = null;
    map.draw();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(map, { x: -1, y: -1 }));

  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = place(event);
      map.camera.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), x, y);
      hover(map, { x, y });
      map.draw();
    },
    { passive: false },
  );

  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = place(event);
    map.camera.zoomAt(2.5, x, y);
    map.draw();
  });

  canvas.addEventListener("keydown", (event) => {
    const arrow = event.shiftKey && ARROWS[event.key];
    const act = arrow ? () => stretch(map, ...arrow) : keys(map)[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  const letGo = (event) => {
    if (event.type === "keyup" && event.key !== "Shift") return;
    map.corner = map.rubber = null;
    map.draw();
  };
  canvas.addEventListener("keyup", letGo);
  canvas.addEventListener("blur", letGo);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const keys = (map) => ({
  ...Object.fromEntries(Object.entries(ARROWS).map(([key, way]) => [key, () => map.step(...way)])),
  "+": () => map.zoom(1.5),
  "=": () => map.zoom(1.5),
  "-": () => map.zoom(1 / 1.5),
  0: () => {
    map.camera.fit();
    map.draw();
  },
});

function hover(map, { x, y }) {
  if (!map.projection) return;
  const pixel = map.camera.pixelAt(x, y);
  const [now, before] = [pixel, map.hovered];
  map.heard.hover(pixel, x, y);
  if (now?.u === before?.u && now?.v === before?.v) return;
  map.hovered = pixel;
  map.draw();
}

function click(map, { x, y }) {
  const row = map.projection ? map.rowAt(map.camera.pixelAt(x, y)) : -1;
  if (row >= 0) map.heard.choose(row);
}

function pinch(camera, fingers, moving, at) {
  const [other] = [...fingers].filter(([id]) => id !== moving).map(([, point]) => point);
  const before = fingers.get(moving);
  const apart = (point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
  camera.zoomAt(apart(at) / apart(before), (at.x + other.x) / 2, (at.y + other.y) / 2);
}

function between(from, to) {
  return {
    x: Math.min(from.x, to.x),
    y: Math.min(from.y, to.y),
    width: Math.abs(to.x - from.x),
    height: Math.abs(to.y - from.y),
  };
}

// A box by keys: it begins at the chosen cell, and every press moves its other corner.
function stretch(map, du, dv) {
  const { columns, rows, rowOf } = map.projection;
  const pixel = rowOf.indexOf(map.chosen);
  if (map.chosen < 0 || pixel < 0) return;
  const from = { u: pixel % columns, v: Math.floor(pixel / columns) };
  const { u, v } = map.corner ?? from;
  map.corner = { u: Math.min(Math.max(u + du, 0), columns - 1), v: Math.min(Math.max(v + dv, 0), rows - 1) };
  const [lowU, lowV] = [Math.min(from.u, map.corner.u), Math.min(from.v, map.corner.v)];
  const [highU, highV] = [Math.max(from.u, map.corner.u), Math.max(from.v, map.corner.v)];
  const [left, bottom] = map.camera.toScreen(lowU, lowV);
  const [right, top] = map.camera.toScreen(highU + 1, highV + 1);
  map.rubber = { x: left, y: top, width: right - left, height: bottom - top };
  map.heard.box(rowsBetween(map, lowU, lowV, highU, highV));
  map.draw();
}

// The rows of the archive that a box on the screen touches.
function rowsIn(map, { x, y, width, height }) {
  const [lowU, lowV] = map.camera.toMap(x, y + height).map(Math.floor);
  const [highU, highV] = map.camera.toMap(x + width, y).map(Math.floor);
  return rowsBetween(map, lowU, lowV, highU, highV);
}

function rowsBetween(map, lowU, lowV, highU, highV) {
  const { columns, rows, rowOf } = map.projection;
  const found = new Set();
  for (let v = Math.max(lowV, 0); v <= Math.min(highV, rows - 1); v++) {
    for (let u = Math.max(lowU, 0); u <= Math.min(highU, columns - 1); u++) found.add(rowOf[v * columns + u]);
  }
  found.delete(-1);
  return [...found];
}
