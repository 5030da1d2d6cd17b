// The canvas after each step: a cell a token, with its confidence; a slider and a button go through the steps.
import type { Slot, Step } from "./server";

const STEP_MS = 350;

function find<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** Shows steps; the newest one until the user goes back. */
export class Canvas {
  private steps: Step[] = [];
  private playing: number | undefined;
  private readonly cells = find("canvas");
  private readonly slider = find<HTMLInputElement>("step");
  private readonly number = find<HTMLOutputElement>("step-number");
  private readonly button = find<HTMLButtonElement>("play");

  constructor() {
    this.slider.addEventListener("input", () => {
      this.stop();
      this.show(this.slider.valueAsNumber);
    });
    this.button.addEventListener("click", () => (this.playing === undefined ? this.play() : this.stop()));
  }

  /** How many steps there are. */
  get count(): number {
    return this.steps.length;
  }

  /** Begin anew. */
  clear(): void {
    this.stop();
    this.steps = [];
  }

  /** The canvas after one more step. */
  add(step: Step): void {
    this.steps.push(step);
    this.slider.max = String(this.steps.length);
    this.slider.disabled = this.button.disabled = this.steps.length < 2;
    this.slider.value = this.slider.max;
    this.show(this.steps.length);
  }

  private play(): void {
    let at = 1;
    this.button.textContent = "Stop";
    this.show(at);
    this.playing = window.setInterval(() => {
      if (++at > this.steps.length) this.stop();
      else this.show(at);
    }, STEP_MS);
  }

  private stop(): void {
    window.clearInterval(this.playing);
    this.playing = undefined;
    this.button.textContent = "Play";
  }

  private show(number: number): void {
    const step = this.steps[number - 1] ?? [];
    const before = this.steps[number - 2] ?? [];
    this.slider.value = String(number);
    this.number.textContent = `${number} of ${this.steps.length}`;
    const end = step.findIndex((slot) => slot.state === "end");
    const shown = end < 0 ? step : step.slice(0, end + 1);
    this.cells.replaceChildren(...shown.flatMap((slot, at) => cell(slot, before[at])));
    this.cells.setAttribute("aria-label", described(shown, number));
  }
}

function cell(slot: Slot, before: Slot | undefined): HTMLElement[] {
  const element = document.createElement("span");
  element.className = `slot ${slot.state}`;
  const isDecided = slot.state === "committed" || slot.state === "end";
  if (isDecided && before?.state !== slot.state) element.classList.add("new");
  if (slot.state === "mask" && before?.state === "committed") element.classList.add("again");
  element.textContent = slot.state === "mask" ? " " : slot.state === "end" ? "⏹" : slot.text.replaceAll("\n", "↵");
  element.style.setProperty("--confidence", slot.state === "mask" ? "0" : slot.confidence.toFixed(3));
  element.title = slot.state === "mask" ? "not decided" : `${slot.state}, ${Math.round(100 * slot.confidence)} %`;
  if (!slot.text.includes("\n")) return [element];
  const rest = document.createElement("span");
  rest.className = "break";
  return [element, rest];
}

function described(step: Step, number: number): string {
  const masks = step.filter((slot) => slot.state === "mask").length;
  const text = step.map((slot) => (slot.state === "mask" ? "▒" : slot.state === "end" ? "" : slot.text)).join("");
  return `step ${number}: ${text}; ${masks} of ${step.length} tokens are not decided`;
}
