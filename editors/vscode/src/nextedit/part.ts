import { type Piece } from "./diff";

/** How much of an edit is taken at a time. */
export type Amount = "word" | "line";

const WORD = /^\s*(?:[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]+|$)/u;

/** The part of an edit that comes first: pieces of `old` to be replaced now. What is left is the new difference. */
export function part(old: string, changes: readonly Piece[], amount: Amount): Piece[] {
  const [first] = changes;
  if (!first) return [];
  return amount === "word" ? [firstWord(first)] : firstLine(old, first, changes);
}

/** What a piece removes, and the first word of what it adds. */
function firstWord(piece: Piece): Piece {
  return { ...piece, text: WORD.exec(piece.text)?.[0] ?? piece.text };
}

/** All changes of the first changed line, or the first line of a change of several. */
function firstLine(old: string, first: Piece, changes: readonly Piece[]): Piece[] {
  const removed = old.slice(first.start, first.end);
  const added = firstLineOf(first.text, first.text.startsWith("\n") ? 1 : 0);
  if (added.length < first.text.length) {
    return [{ start: first.start, end: first.start + firstLineOf(removed).length, text: added }];
  }
  const lineEnd = (old + "\n").indexOf("\n", first.end);
  return [first, ...changes.slice(1).filter((piece) => piece.end <= lineEnd && !piece.text.includes("\n"))];
}

/** A text up to the end of its first line that has one, counted from an offset. */
function firstLineOf(text: string, from = 0): string {
  const end = text.indexOf("\n", from);
  if (end < 0) return text;
  return from > 0 ? text.slice(0, end) : text.slice(0, end + 1);
}
