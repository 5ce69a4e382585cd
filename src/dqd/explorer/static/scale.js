// From values to colours: a share between 0 and 1, straight, by the logarithm, or by rank.

export const SCALES = [
  ["linear", "linear"],
  ["log", "log"],
  ["quantile", "quantile"],
];

export const inOrder = (values) => Float64Array.from(values).sort();

// `sorted` are the values in order.
export function makeScale(sorted, kind) {
  const [low, high] = limits(sorted);
  const usable = kind === "log" && !(low > 0) ? "linear" : kind;
  return {
    kind: usable,
    low,
    high,
    sorted,
    share: shares[usable](low, high, sorted),
    value: inverses[usable](low, high, sorted),
  };
}

export const index = (share) => Math.round(255 * Math.min(Math.max(share, 0), 1));

const shares = {
  linear: (low, high) => (value) => (value - low) / (high - low),
  log: (low, high) => (value) => Math.log(value / low) / Math.log(high / low),
  quantile: (low, high, sorted) => (value) => rank(sorted, value) / Math.max(sorted.length - 1, 1),
};

const inverses = {
  linear: (low, high) => (share) => low + share * (high - low),
  log: (low, high) => (share) => low * (high / low) ** share,
  quantile: (low, high, sorted) => (share) => sorted[Math.round(share * (sorted.length - 1))],
};

// Both ends of the scale. A few values far below all others do not count: they would take most of the colours.
function limits(sorted) {
  if (sorted.length === 0) return [0, 1];
  const at = (share) => sorted[Math.floor(share * (sorted.length - 1))];
  const fence = Math.min(at(0.25) - 3 * (at(0.75) - at(0.25)), at(0.01));
  const low = sorted.find((value) => value >= fence);
  const high = sorted[sorted.length - 1];
  return low < high ? [low, high] : [low - 0.5, high + 0.5];
}

// How many values lie below this one.
export function rank(sorted, value) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
