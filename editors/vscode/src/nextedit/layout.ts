import { apply, type Piece } from "./diff";

/** What is drawn of an edit; offsets are UTF-16 units of its old text, lines count from its first line. */
export interface Layout {
  readonly removed: readonly (readonly [start: number, end: number])[];
  /** New text after an offset, within a line. */
  readonly inline: readonly { readonly at: number; readonly text: string }[];
  /** New lines beside the old ones. */
  readonly blocks: readonly Block[];
}

/** Lines that replace the old lines from `first` to `last`, or that come above `first` or below it. */
export interface Block {
  readonly first: number;
  readonly last: number;
  readonly place: "beside" | "above" | "below";
  readonly lines: readonly string[];
}

/** Most changes in a line that are drawn inside it; a line with more is drawn again as a whole. */
const MOST_INLINE = 3;

/** How to draw an edit of whole lines, given its pieces. */
export function layout(old: string, changes: readonly Piece[]): Layout {
  const grouped = groups(old, changes);
  return {
    removed: grouped.flatMap((group) => removed(old, group)),
    inline: grouped
      .filter(isInline)
      .flatMap((group) => group.pieces)
      .filter((piece) => piece.text)
      .map((piece) => ({ at: piece.end, text: piece.text })),
    blocks: grouped
      .filter((group) => !isInline(group))
      .map((group) => block(old, group))
      .filter((each) => each !== undefined),
  };
}

/** Changes of the same lines. */
interface Group {
  readonly first: number;
  readonly last: number;
  readonly pieces: readonly Piece[];
}

function groups(old: string, changes: readonly Piece[]): Group[] {
  const made: Group[] = [];
  for (const piece of changes) {
    const group = { first: lineAt(old, piece.start), last: lineAt(old, piece.end), pieces: [piece] };
    const last = made.at(-1);
    if (last && group.first <= last.last && !isLines(old, piece) && !last.pieces.some((each) => isLines(old, each))) {
      made[made.length - 1] = { ...last, last: group.last, pieces: [...last.pieces, piece] };
    } else made.push(group);
  }
  return made;
}

function isInline({ first, last, pieces }: Group): boolean {
  return first === last && pieces.length <= MOST_INLINE && !pieces.some(({ text }) => text.includes("\n"));
}

/** What a group takes away: its words, or all of the lines beside which it has new ones. */
function removed(old: string, group: Group): (readonly [number, number])[] {
  const spans = group.pieces.filter(({ start, end }) => end > start).map(({ start, end }) => [start, end] as const);
  if (isInline(group)) return spans;
  if (block(old, group)?.place === "beside") {
    const starts = lineStarts(old);
    return textOf(old, starts[group.first] ?? 0, starts[group.last + 1] ?? old.length);
  }
  const texts = spans.flatMap(([start, end]) => textOf(old, start, end));
  return texts.length > 0 ? texts : spans;
}

/** The text of each line of a span, without the white space around it. */
function textOf(old: string, start: number, end: number): (readonly [number, number])[] {
  const found = [...old.slice(start, end).matchAll(/\S(?:.*\S)?/g)];
  return found.map((line) => [start + line.index, start + line.index + line[0].length]);
}

/** Whether whole lines are inserted or removed. */
function isLines(old: string, { start, end, text }: Piece): boolean {
  const startsLine = start === 0 || old[start - 1] === "\n";
  if (start === end) return (startsLine && text.endsWith("\n")) || (start === old.length && text.startsWith("\n"));
  return !text && (startsLine || old[start] === "\n") && (end === old.length || old[end - 1] === "\n");
}

function block(old: string, { first, last, pieces }: Group): Block | undefined {
  const [piece] = pieces;
  if (piece && isLines(old, piece)) {
    if (!piece.text) return undefined; // what is removed is drawn in place
    const place = piece.text.startsWith("\n") ? "below" : "above";
    return { first, last: first, place, lines: piece.text.replace(/^\n|\n$/g, "").split("\n") };
  }
  const starts = lineStarts(old);
  const from = starts[first] ?? 0;
  const to = (starts[last + 1] ?? old.length + 1) - 1;
  const own = pieces.map((each) => ({ ...each, start: each.start - from, end: each.end - from }));
  return { first, last, place: "beside", lines: apply(old.slice(from, to), own).split("\n") };
}

function lineStarts(text: string): number[] {
  return [0, ...[...text.matchAll(/\n/g)].map((found) => found.index + 1)];
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length - 1;
}

/** A line as it looks: tabs as spaces up to the next stop. */
export function expanded(line: string, tabSize: number): string {
  let made = "";
  for (const character of line) made += character === "\t" ? " ".repeat(tabSize - (made.length % tabSize)) : character;
  return made;
}
