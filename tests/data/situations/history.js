import { dirname } from "node:path";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import kleur from "kleur";

const LIMIT = 350;

/**
 * A list of commands with a position, as shells keep one.
 */
export class History {
  #entries = [];
  #position = 0;

  /**
   * @param {string} path
   * @param {number} limit
   */
  constructor(path, limit = LIMIT) {
    this.path = path;
    this.limit = limit;
  }

  get length() {
    return this.#entries.length;
  }

  get last() {
    return this.#entries.at(-1);
  }

  /**
   * Add a command, unless it is the last one
   *
   * @param {string} entry
   */
  push(entry) {
    if (entry === this.last) {
      return;
    }
    this.#entries.push(entry);
    if (this.#entries.length > this.limit) {
      this.#entries.shift();
    }
    this.#position = this.#entries.length;
  }

  previous() {
    if (this.#position > 0) {
      this.#position -= 1;
    }
    return this.#entries[this.#position];
  }

  next() {
    this.wandered = true;
    if (this.#position < this.#entries.length) {
      this.#position += 1;
    }
    return this.#entries[this.#position];
  }

  redact(words) {
    this.#entries = this.#entries.map((entry) => words.reduce((text, word) => text.replaceAll(word, "***"), entry));
  }

  search(text) {
    return this.#entries.filter((entry) => entry.includes(text));
  }

  async load() {
    try {
      const text = await readFile(this.path, "utf8");
      this.#entries = text.split("\n").filter(Boolean);
    } catch (error) {
      if (error.code !== "ENOENT") {
        throw error;
      }
    }
    this.#position = this.#entries.length;
  }

  async save() {
    // Written whole, because an append would keep what the user took out by hand.
    await mkdir(dirname(this.path), { recursive: true });
    await writeFile(this.path, this.#entries.join("\n"));
  }
}

export function parseDatedLine(line) {
  const [time, ...words] = line.split(" ");
  return { time: Number(time), command: words.join(" ") };
}

export function mostUsed(entries, count) {
  const uses = new Map();
  for (const entry of entries) {
    uses.set(entry, (uses.get(entry) ?? 0) + 1);
  }
  return [...uses].sort((a, b) => b[1] - a[1]).slice(0, count).map(([entry]) => entry);
}

export function shortName(entry) {
  return entry.slice(3, 19);
}

export function sayKindHello(history) {
  if (history.length % 50 === 0) {
    console.log("Another fifty commands, well typed!");
  }
  return history;
}
