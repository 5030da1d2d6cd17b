/** What decides what Tab does while an edit is drawn. */
export interface Cursor {
  readonly line: number;
  /** The text of its line before it. */
  readonly before: string;
  /** Whether it is where a jump to the edit put it. */
  readonly hasJumped: boolean;
}

/** The first and the last line of an edit. */
export type Lines = readonly [first: number, last: number];

/** The lines of what is in another document. */
export const NOWHERE: Lines = [-1, -1];

/**
 * Tab jumps to an edit, and applies it where the cursor is on its lines. It indents while the cursor is in the
 * indentation of a line, unless a jump put it there.
 */
export function tabMeaning(cursor: Cursor, lines: Lines): "jump" | "apply" | "indent" {
  if (!cursor.hasJumped && cursor.before.trim() === "") return "indent";
  return isOn(cursor.line, lines) ? "apply" : "jump";
}

export function isOn(line: number, [first, last]: Lines): boolean {
  return first <= line && line <= last;
}

/** Where something is, seen from an editor. */
export type Where = "above" | "below" | "here" | "elsewhere";

/** Where an edit is, seen from the lines in view. */
export function direction([first, last]: Lines, view: readonly Lines[]): "above" | "below" | "here" {
  const top = view[0]?.[0] ?? 0;
  const bottom = view.at(-1)?.[1] ?? 0;
  if (last < top) return "above";
  if (first > bottom) return "below";
  return "here";
}

/** The words for a place: a line, counted from 0, and the file if it is another one. */
export function pointed(where: Where, uri: string, line: number): string {
  const words = `line ${(line + 1).toFixed()}`;
  return { here: "", above: `↑ ${words}`, below: `↓ ${words}`, elsewhere: `→ ${fileOf(uri)}, ${words}` }[where];
}

/** The name of a file. */
export function fileOf(uri: string): string {
  return decodeURIComponent(uri.split("/").at(-1) ?? "");
}

/** Lines that sticky headers may cover at the top of an editor. */
const STICKY_LINES = 5;

/** The line that points to an edit out of view: the cursor's, or else one near the edge where the edit is. */
export function hintLine(where: "above" | "below" | "elsewhere", cursor: number, view: readonly Lines[]): number {
  const top = view[0]?.[0] ?? 0;
  const bottom = view.at(-1)?.[1] ?? 0;
  if (isOn(cursor, [top, bottom])) return cursor;
  return where === "above" ? Math.min(top + STICKY_LINES, bottom) : Math.max(bottom - 1, top);
}
