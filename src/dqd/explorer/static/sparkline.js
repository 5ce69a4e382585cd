// A solution's numbers as one small picture. Of more numbers than pixels, the range under each pixel is drawn.

export function drawSparkline(canvas, numbers) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const style = getComputedStyle(canvas);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  let [least, most] = [Infinity, -Infinity];
  for (const number of numbers) [least, most] = [Math.min(least, number), Math.max(most, number)];
  const [low, high] = least < most ? [least, most] : [least - 0.5, most + 0.5];
  const toY = (value) => 3 + (1 - (value - low) / (high - low)) * (height - 6);
  zero(context, width, toY(Math.min(Math.max(0, low), high)), style);
  context.fillStyle = style.getPropertyValue("--accent");
  const columns = Math.min(numbers.length, Math.floor(width));
  for (let i = 0; i < columns; i++) {
    const part = numbers.slice(
      Math.floor((i * numbers.length) / columns),
      Math.floor(((i + 1) * numbers.length) / columns),
    );
    const base = Math.min(Math.max(0, low), high);
    const [a, b] = [toY(Math.max(base, ...part)), toY(Math.min(base, ...part))];
    context.fillRect(
      (i * width) / columns,
      a,
      Math.max(width / columns - (width / columns > 3 ? 1 : 0), 0.6),
      Math.max(b - a, 1),
    );
  }
  return [least, most];
}

function zero(context, width, y, style) {
  context.fillStyle = style.getPropertyValue("--line");
  context.fillRect(0, Math.round(y), width, 1);
}
