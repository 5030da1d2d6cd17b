import { apply, pieces, type Piece } from "./diff";

/** How far a renaming is, as the server says it. */
export interface Progress {
  readonly label: string;
  readonly remaining: number;
  /** The command that finishes it. */
  readonly applyAll: { readonly command: string; readonly arguments: readonly unknown[] };
}

/** The server's answer to a request for next edits. */
export interface Answer {
  readonly text: string;
  readonly range: { readonly start: Place; readonly end: Place };
  readonly textDocument: { readonly uri: string; readonly version?: number };
  readonly command?: { readonly arguments?: readonly unknown[] };
  readonly mercury?: Progress;
}

interface Place {
  readonly line: number;
  readonly character: number;
}

/** What an edit needs to know about its document. */
export interface Text {
  readonly uri: { toString(): string };
  readonly version: number;
  readonly lineCount: number;
  lineAt(line: number): { readonly text: string };
}

/** An edit of whole lines, for one version of a document. Its texts end their lines with "\n". */
export interface Pending {
  readonly id: string;
  readonly uri: string;
  readonly version: number;
  readonly line: number;
  readonly old: string;
  readonly text: string;
  readonly pieces: readonly Piece[];
  readonly renaming: Progress | undefined;
}

/** The server's edit on whole lines; undefined if it changes nothing or is for another text than the document's. */
export function pending(answer: Answer, document: Text): Pending | undefined {
  const uri = document.uri.toString();
  const { version } = document;
  if (answer.textDocument.uri !== uri || answer.textDocument.version !== version) return undefined;
  const { start, end } = answer.range;
  if (end.line >= document.lineCount || end.line < start.line) return undefined;
  const old = linesOf(document, start.line, end.line);
  const head = document.lineAt(start.line).text.slice(0, start.character);
  const tail = document.lineAt(end.line).text.slice(end.character);
  const text = head + answer.text.replace(/\r\n?/g, "\n") + tail;
  const id = answer.command?.arguments?.[0];
  const place = { uri, version, line: start.line };
  return differing({ id: typeof id === "string" ? id : "", ...place, old, text, renaming: answer.mercury });
}

/** What is left of an edit after some of its pieces were made, in the version that has them. */
export function rest(edit: Pending, made: readonly Piece[], version: number): Pending | undefined {
  return differing({ ...edit, version, old: apply(edit.old, made) });
}

/** Whether a document still has the lines that an edit was made for. */
export function fits(edit: Pending, document: Text): boolean {
  const last = edit.line + edit.old.split("\n").length - 1;
  if (edit.uri !== document.uri.toString()) return false;
  return edit.version === document.version && last < document.lineCount && linesOf(document, edit.line, last) === edit.old;
}

/** A position of a document, given an offset in an edit's old text. */
export function placeAt(edit: Pending, offset: number): Place {
  const lines = edit.old.slice(0, offset).split("\n");
  return { line: edit.line + lines.length - 1, character: lines.at(-1)?.length ?? 0 };
}

/** The first and the last line that an edit changes, counted in the document. */
export function changedLines(edit: Pending): readonly [number, number] {
  const [first, last] = [edit.pieces[0], edit.pieces.at(-1)];
  return [placeAt(edit, first?.start ?? 0).line, placeAt(edit, last?.end ?? 0).line];
}

function differing(edit: Omit<Pending, "pieces">): Pending | undefined {
  const found = pieces(edit.old, edit.text);
  return found.length > 0 ? { ...edit, pieces: found } : undefined;
}

function linesOf(document: Text, first: number, last: number): string {
  const lines = [];
  for (let line = first; line <= last; line++) lines.push(document.lineAt(line).text);
  return lines.join("\n");
}

/** Where the last of some pieces ends once they are made; in front of a line break that ends it. */
export function endOf(edit: Pending, made: readonly Piece[]): Place {
  const last = made.at(-1);
  if (!last) return placeAt(edit, 0);
  const before = apply(edit.old.slice(0, last.end), made);
  return placeAt({ ...edit, old: before }, before.length - (last.text.endsWith("\n") ? 1 : 0));
}
