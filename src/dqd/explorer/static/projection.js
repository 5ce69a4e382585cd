// Which elite every pixel of the map shows: row numbers of the archive, -1 where there is none.
// Pixel (u, v) is at v * columns + u; v counts upward.

const BINS = 100; // along each axis, where cells are neither a grid nor drawn by pixels

export function project(archive, arrays, { x, y, fixed }) {
  if (archive.grid) return ofGrid(archive.grid, arrays, x, y, fixed);
  return arrays.raster ? ofRaster(archive, arrays) : ofMeasures(archive, arrays, x, y);
}

function ofGrid(grid, arrays, x, y, fixed) {
  const { shape, lower, upper } = grid;
  const strides = shape.map((_, j) => shape.slice(j + 1).reduce((product, length) => product * length, 1));
  const along = (cell, j) => Math.floor(cell / strides[j]) % shape[j];
  const [columns, rows] = [shape[x], shape.length > 1 ? shape[y] : 1];
  const held = fixed.map((index, j) => [j, index]).filter(([j, index]) => index !== null && j !== x && j !== y);
  const rowOf = new Int32Array(columns * rows).fill(-1);
  const { cell, objective } = arrays;
  for (let row = 0; row < cell.length; row++) {
    if (held.some(([j, index]) => along(cell[row], j) !== index)) continue;
    const pixel = (shape.length > 1 ? along(cell[row], y) : 0) * columns + along(cell[row], x);
    keepBest(rowOf, pixel, row, objective);
  }
  const vertical = shape.length > 1 ? [lower[y], upper[y]] : [0, 1];
  return { columns, rows, rowOf, extent: [lower[x], upper[x], ...vertical], squares: true };
}

function ofRaster(archive, { raster, extent, cell }) {
  const rowOfCell = new Int32Array(archive.cells).fill(-1);
  cell.forEach((number, row) => (rowOfCell[number] = row));
  const [rows, columns] = raster.shape;
  return {
    columns,
    rows,
    rowOf: Int32Array.from(raster, (number) => (number < 0 ? -1 : rowOfCell[number])),
    extent: Array.from(extent),
    squares: false,
  };
}

function ofMeasures(archive, arrays, x, y) {
  const k = archive.labels.length;
  const { measures, objective, cell } = arrays;
  const edges = [x, y].map((j) => ends(measures, j, k));
  const rowOf = new Int32Array(BINS * BINS).fill(-1);
  for (let row = 0; row < cell.length; row++) {
    const [u, v] = [x, y].map((j, i) => bin(measures[row * k + j], ...edges[i]));
    keepBest(rowOf, v * BINS + u, row, objective);
  }
  return { columns: BINS, rows: BINS, rowOf, extent: edges.flat(), squares: true };
}

function keepBest(rowOf, pixel, row, objective) {
  const there = rowOf[pixel];
  if (there < 0 || objective[row] > objective[there]) rowOf[pixel] = row;
}

function ends(measures, j, k) {
  let [low, high] = [Infinity, -Infinity];
  for (let i = j; i < measures.length; i += k) {
    low = Math.min(low, measures[i]);
    high = Math.max(high, measures[i]);
  }
  return low < high ? [low, high] : [0, 1];
}

const bin = (value, low, high) => Math.min(Math.floor(((value - low) / (high - low)) * BINS), BINS - 1);

// The pixel that shows a row of the archive, or -1.
export const pixelOf = (projection, row) => (row < 0 ? -1 : projection.rowOf.indexOf(row));
