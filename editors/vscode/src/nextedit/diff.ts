/** A span of a text, in UTF-16 units, and what replaces it. */
export interface Piece {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Where two lists differ: the items from `start` to `end` of the old one, and of the new one. */
interface Run {
  readonly old: readonly [start: number, end: number];
  readonly now: readonly [start: number, end: number];
}

/** Largest product of two lists' lengths that are compared item by item; 40,000 cells take about a millisecond. */
const MOST_CELLS = 40_000;

/** Longest unchanged text, in UTF-16 units, between two changes of a line that are drawn as one. */
const LONGEST_BRIDGE = 2;

/** Smallest share of a changed line that must stay for its words to be compared. */
const LEAST_KEPT = 0.3;

const TOKEN = /\n|[\p{L}\p{N}_]+|[^\S\n]+|[^\s\p{L}\p{N}_]/gu;

/**
 * What turns `old` into `text`, by words, in order. Both end their lines with "\n". A line that is inserted or removed
 * is a piece with its line break.
 */
export function pieces(old: string, text: string): Piece[] {
  const oldLines = old.split("\n");
  const newLines = text.split("\n");
  const starts = startsOf(oldLines.map((line) => `${line}\n`));
  return runs(oldLines, newLines).flatMap((run) => {
    const removed = oldLines.slice(...run.old);
    const added = newLines.slice(...run.now);
    if (removed.length === 0) return [insertion(added, run.old[0], oldLines.length, starts, old)];
    if (added.length === 0) return [removal(run.old, oldLines.length, starts, old)];
    const at = starts[run.old[0]] ?? 0;
    if (removed.length !== added.length) return words(removed.join("\n"), added.join("\n"), at);
    return removed.flatMap((line, index) => words(line, added[index] ?? "", starts[run.old[0] + index] ?? 0));
  });
}

/** A text with all of its pieces replaced. */
export function apply(old: string, changes: readonly Piece[]): string {
  let at = 0;
  let made = "";
  for (const { start, end, text } of changes) {
    made += old.slice(at, start) + text;
    at = end;
  }
  return made + old.slice(at);
}

function insertion(lines: string[], index: number, count: number, starts: number[], old: string): Piece {
  const text = lines.join("\n");
  if (index === count) return { start: old.length, end: old.length, text: `\n${text}` };
  const at = starts[index] ?? 0;
  return { start: at, end: at, text: `${text}\n` };
}

function removal([first, end]: readonly [number, number], count: number, starts: number[], old: string): Piece {
  if (end < count) return { start: starts[first] ?? 0, end: starts[end] ?? 0, text: "" };
  return { start: Math.max(0, (starts[first] ?? 0) - 1), end: old.length, text: "" };
}

/** The pieces of a changed line or of changed lines, which begin at `offset`. */
function words(old: string, text: string, offset: number): Piece[] {
  const oldTokens = old.match(TOKEN) ?? [];
  const newTokens = text.match(TOKEN) ?? [];
  const starts = startsOf(oldTokens);
  const found = runs(oldTokens, newTokens).map(({ old: [start, end], now }) => ({
    start: starts[start] ?? old.length,
    end: starts[end] ?? old.length,
    text: newTokens.slice(...now).join(""),
  }));
  const tidy = isRewritten(old, found) ? [whole(old, text)] : bridged(old, found);
  return tidy.map((piece) => ({ ...piece, start: piece.start + offset, end: piece.end + offset }));
}

/** Whether so little stays that pieces would be hard to read. */
function isRewritten(old: string, found: readonly Piece[]): boolean {
  const removed = found.reduce((sum, { start, end }) => sum + end - start, 0);
  return found.length > 2 && old.trim().length - removed < LEAST_KEPT * old.trim().length;
}

/** One piece, without the white space that both texts begin with. */
function whole(old: string, text: string): Piece {
  let start = 0;
  while (start < old.length && old[start] === text[start] && /[^\S\n]/.test(old[start] ?? "")) start++;
  return { start, end: old.length, text: text.slice(start) };
}

/** Pieces that only a character or two separate are one, unless a line break does. */
function bridged(old: string, found: readonly Piece[]): Piece[] {
  const made: Piece[] = [];
  for (const piece of found) {
    const last = made.at(-1);
    const between = last ? old.slice(last.end, piece.start) : "";
    if (last && between.length <= LONGEST_BRIDGE && !between.includes("\n")) {
      made[made.length - 1] = { start: last.start, end: piece.end, text: last.text + between + piece.text };
    } else made.push(piece);
  }
  return made;
}

/** Where each item begins once all are joined, and where the last one ends. */
function startsOf(items: readonly string[]): number[] {
  const starts = [0];
  for (const item of items) starts.push((starts.at(-1) ?? 0) + item.length);
  return starts;
}

/** Where two lists differ, by their longest common subsequence; one run if they are too long for that. */
function runs(old: readonly string[], now: readonly string[]): Run[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const oldEnd = old.length - tail;
  const newEnd = now.length - tail;
  if (head === oldEnd && head === newEnd) return [];
  if ((oldEnd - head) * (newEnd - head) > MOST_CELLS) return [{ old: [head, oldEnd], now: [head, newEnd] }];
  return aligned(old.slice(head, oldEnd), now.slice(head, newEnd)).map((run) => ({
    old: [run.old[0] + head, run.old[1] + head],
    now: [run.now[0] + head, run.now[1] + head],
  }));
}

function aligned(old: readonly string[], now: readonly string[]): Run[] {
  const common = commonLengths(old, now);
  const length = (row: number, column: number) => common[row]?.[column] ?? 0;
  const found: Run[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    const [fromRow, fromColumn] = [row, column];
    while ((row < old.length || column < now.length) && !(row < old.length && old[row] === now[column])) {
      if (column === now.length || (row < old.length && length(row + 1, column) >= length(row, column + 1))) row++;
      else column++;
    }
    if (row > fromRow || column > fromColumn) found.push({ old: [fromRow, row], now: [fromColumn, column] });
    while (row < old.length && old[row] === now[column]) [row, column] = [row + 1, column + 1];
  }
  return found;
}

/** The length of the longest common subsequence of what follows each pair of positions. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint16Array[] {
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let row = old.length - 1; row >= 0; row--) {
    const [here, below] = [common[row], common[row + 1]];
    if (!here || !below) continue;
    for (let column = now.length - 1; column >= 0; column--) {
      here[column] =
        old[row] === now[column]
          ? (below[column + 1] ?? 0) + 1
          : Math.max(below[column] ?? 0, here[column + 1] ?? 0);
    }
  }
  return common;
}
