// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (value) => (known(value) ? whole.format(Math.round(value)) : "–");

// Arrays of the user's own, by their names in a file.
export const isField = (name) => name.startsWith("field_");
export const fieldName = (name) => name.slice("field_".length);

export const known = (value) => typeof value === "number" && Number.isFinite(value);

// So many significant digits; very large and very small ones with a power of ten.
export function figure(value, digits = 5) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4))
    return value.toExponential(Math.max(digits - 2, 1)).replace("e+", "e");
  return whole.format === undefined ? String(value) : trimmed(value, digits);
}

function trimmed(value, digits) {
  return new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value).replace("-", "−");
}

export const fixed = (value, places = 2) => (known(value) ? value.toFixed(places).replace("-", "−") : "–");

export const percent = (value) => (known(value) ? `${fixed(value, 1)} %` : "–");

export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 60) return `${figure(seconds, 3)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

export function ago(time) {
  const seconds = Date.now() / 1000 - time;
  const steps = [
    [60, "s", 1],
    [3600, "min", 60],
    [86400, "h", 3600],
    [Infinity, "d", 86400],
  ];
  const [, unit, size] = steps.find(([limit]) => seconds < limit);
  return seconds < 5 ? "now" : `${Math.floor(seconds / size)} ${unit} ago`;
}

export function bytes(size) {
  if (size < 1e6) return `${Math.max(1, Math.round(size / 1e3))} kB`;
  return `${figure(size / 1e6, 3)} MB`;
}

// About `wanted` round numbers between two others.
export function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted;
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
