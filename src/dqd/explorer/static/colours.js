// Palettes: even steps in lightness from dark to light (OKLab), so that order is seen without telling hues apart.

const PATHS = {
  // hue in degrees and chroma, from low to high
  tide: { light: [0.3, 0.94], hue: [292, 268, 232, 190, 152, 110], chroma: [0.13, 0.14, 0.12, 0.12, 0.15, 0.16] },
  ember: { light: [0.26, 0.95], hue: [300, 330, 10, 40, 70, 100], chroma: [0.12, 0.17, 0.19, 0.17, 0.15, 0.1] },
  dusk: { light: [0.3, 0.94], hue: [262, 262, 255, 90, 95, 98], chroma: [0.12, 0.07, 0.02, 0.05, 0.11, 0.14] },
  grey: { light: [0.25, 0.97], hue: [0, 0], chroma: [0, 0] },
};

export const PALETTES = Object.keys(PATHS);

// 256 colours as bytes: red, green, blue.
export function table(name) {
  const { light, hue, chroma } = PATHS[name];
  const colours = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const t = i / 255;
    colours.set(inGamut(light[0] + t * (light[1] - light[0]), along(chroma, t), turned(hue, t)), 3 * i);
  }
  return colours;
}

// Red below nothing, blue above it: for differences, from -1 to 1.
export function divergingTable() {
  const colours = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const t = (i / 255) * 2 - 1;
    const size = Math.abs(t);
    colours.set(inGamut(0.96 - 0.46 * size, 0.16 * size, t < 0 ? 45 : 255), 3 * i);
  }
  return colours;
}

export const css = (colours, index) => `rgb(${colours.slice(3 * index, 3 * index + 3).join(" ")})`;

// Colours of lines, apart in lightness and hue (after Okabe and Ito).
export const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a87f00", "#7a6ad8", "#7f7f7f"];

function along(values, t) {
  const place = t * (values.length - 1);
  const i = Math.min(Math.floor(place), values.length - 2);
  return values[i] + (place - i) * (values[i + 1] - values[i]);
}

// Between two hues the short way round.
function turned(hues, t) {
  const way = [hues[0]];
  for (const hue of hues.slice(1)) {
    const before = way[way.length - 1];
    way.push(before + ((((hue - before) % 360) + 540) % 360) - 180);
  }
  return along(way, t);
}

function inGamut(lightness, chroma, degrees) {
  for (let c = chroma; ; c *= 0.997) {
    const colour = rgb(lightness, c, (degrees * Math.PI) / 180);
    if (c < 1e-3 || colour.every((part) => part > -0.001 && part < 1.001))
      return colour.map((part) => Math.round(255 * gamma(part)));
  }
}

// OKLab to linear sRGB (Ottosson 2020).
function rgb(lightness, chroma, angle) {
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function gamma(part) {
  const value = Math.min(Math.max(part, 0), 1);
  return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
}
