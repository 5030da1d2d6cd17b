// A histogram of how long answers took, on a logarithmic scale.

const EDGES_MS = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560];
const WIDTH = 440;
const HEIGHT = 96;
const FOOT = 18;
const SVG = "http://www.w3.org/2000/svg";

const times: number[] = [];

/** Count one more answer. */
export function note(milliseconds: number): void {
  times.push(milliseconds);
  const sorted = [...times].sort((a, b) => a - b);
  const quantile = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const count = times.length === 1 ? "1 answer" : `${times.length} answers`;
  const said = `${count}; half within ${quantile(0.5).toFixed(0)} ms, 95 % within ${quantile(0.95).toFixed(0)} ms`;
  (document.getElementById("times-summary") as HTMLElement).textContent = said;
  (document.getElementById("times") as HTMLElement).replaceChildren(drawn());
}

function drawn(): SVGElement {
  const counts = new Array<number>(EDGES_MS.length + 1).fill(0);
  for (const time of times) {
    const bin = EDGES_MS.findIndex((edge) => time < edge);
    const at = bin < 0 ? EDGES_MS.length : bin;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  const most = Math.max(...counts);
  const width = WIDTH / counts.length;
  const picture = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  counts.forEach((count, at) => {
    const height = ((HEIGHT - FOOT - 4) * count) / most;
    const box = { x: at * width + 1, y: HEIGHT - FOOT - height, width: width - 2, height, rx: 1.5 };
    picture.append(element("rect", box));
    const edge = EDGES_MS[at];
    if (edge !== undefined) picture.append(element("text", { x: (at + 1) * width, y: HEIGHT - 4, "text-anchor": "middle" }, `${edge}`));
  });
  picture.append(element("text", { x: WIDTH, y: HEIGHT - 4, "text-anchor": "end" }, "ms"));
  picture.append(element("line", { x1: 0, x2: WIDTH, y1: HEIGHT - FOOT + 0.5, y2: HEIGHT - FOOT + 0.5 }));
  return picture;
}

function element(name: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}
