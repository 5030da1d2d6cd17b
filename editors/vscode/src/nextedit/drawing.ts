import {
  Range,
  ThemeColor,
  window,
  type DecorationOptions,
  type Disposable,
  type TextEditor,
  type TextEditorDecorationType,
  type ThemableDecorationAttachmentRenderOptions,
} from "vscode";
import { expanded, layout, type Block } from "./layout";
import { changedLines, placeAt, type Pending } from "./pending";
import { Pointer, unbroken, variable, viewOf } from "./pointer";
import { direction, type Where } from "./tab";

/** The colours that package.json declares. */
const COLOURS = {
  removed: "mercury.nextEditRemovedBackground",
  removedLine: "mercury.nextEditRemovedForeground",
  added: "mercury.nextEditAddedBackground",
  addedText: "mercury.nextEditAddedForeground",
} as const;

/** Columns between the longest line beside new lines and these. */
const GAP_COLUMNS = 2;

/** Columns between new lines and the edge of their background. */
const PADDING_COLUMNS = 1;

/** Draws one edit in one editor, with decorations alone. */
export class Drawing implements Disposable {
  private readonly removed = window.createTextEditorDecorationType({
    // As a colour of the text itself: VS Code's own background would reach below the text that is drawn behind it.
    textDecoration: `line-through 1px ${variable(COLOURS.removedLine)}; background: ${variable(COLOURS.removed)}; border-radius: 2px`,
  });
  private readonly added = window.createTextEditorDecorationType({});
  private readonly inserted = {
    above: window.createTextEditorDecorationType(border("1px 0 0 0")),
    below: window.createTextEditorDecorationType(border("0 0 1px 0")),
  };
  private readonly pointer = new Pointer();
  private editor: TextEditor | undefined;
  /** Columns from the end of a line to that of the new lines beside it. */
  private boxEnds: ReadonlyMap<number, number> = new Map();

  /** Draw what the edit removes and adds, unless it is in another document. */
  show(editor: TextEditor, edit: Pending): void {
    if (this.editor !== editor) this.clear();
    this.editor = editor;
    if (isIn(editor, edit)) this.showText(editor, edit);
  }

  clear(): void {
    for (const type of this.types()) this.editor?.setDecorations(type, []);
    this.pointer.clear();
    this.editor = undefined;
    this.boxEnds = new Map();
  }

  /** Show where the edit is, and the key that acts on it. */
  point(editor: TextEditor, edit: Pending, key: string): void {
    const lines = changedLines(edit);
    const where = isIn(editor, edit) ? direction(lines, viewOf(editor)) : "elsewhere";
    const words = [said(edit, where), key];
    this.pointer.show(editor, { uri: edit.uri, lines, where, words }, this.boxEnds);
  }

  dispose(): void {
    for (const each of [...this.types(), this.pointer]) each.dispose();
  }

  private types(): TextEditorDecorationType[] {
    return [this.removed, this.added, ...Object.values(this.inserted)];
  }

  private showText(editor: TextEditor, edit: Pending): void {
    const drawn = layout(edit.old, edit.pieces);
    const at = (offset: number) => {
      const { line, character } = placeAt(edit, offset);
      return [line, character] as const;
    };
    editor.setDecorations(
      this.removed,
      drawn.removed.map(([start, end]) => new Range(...at(start), ...at(end))),
    );
    const tabSize = Number(editor.options.tabSize) || 4;
    const inline = drawn.inline.map(({ at: offset, text }) => {
      const range = new Range(...at(offset), ...at(offset));
      const attached = inserted(expanded(text, tabSize));
      // After the cursor, except at the end of a line: what is attached after that place may come after the hint.
      const isEnd = editor.document.lineAt(range.end).range.end.isEqual(range.end);
      return { range, renderOptions: isEnd ? { before: attached } : { after: attached } };
    });
    const boxes = drawn.blocks.map((block) => box(editor, edit.line, block, tabSize));
    editor.setDecorations(this.added, [...inline, ...boxes.map((each) => boxed(editor, each, tabSize))]);
    const ends = boxes.map((each) => [each.line, each.column + each.width - widthOf(editor, each.line, tabSize)] as const);
    this.boxEnds = new Map(ends);
    for (const place of ["above", "below"] as const) {
      const lines = drawn.blocks.filter((block) => block.place === place).map((block) => edit.line + block.first);
      editor.setDecorations(this.inserted[place], lines.map((line) => new Range(line, 0, line, 0)));
    }
  }
}

/** What an edit is, in words: out of view all of it, else how far a renaming is. */
function said({ renaming, old, pieces }: Pending, where: Where): string {
  if (renaming) return where === "here" ? (/\((.*)\)$/.exec(renaming.label)?.[1] ?? "") : renaming.label;
  const [piece] = pieces;
  if (where === "here" || pieces.length !== 1 || !piece) return "";
  const [removed, added] = [old.slice(piece.start, piece.end), piece.text].map((text) => text.trim());
  return removed && added && !`${removed}${added}`.includes("\n") ? `${removed} → ${added}` : "";
}

function isIn(editor: TextEditor, edit: Pending): boolean {
  return editor.document.uri.toString() === edit.uri;
}

/** New text after the text that it replaces. */
function inserted(text: string): ThemableDecorationAttachmentRenderOptions {
  return {
    contentText: unbroken(text),
    color: new ThemeColor(COLOURS.addedText),
    backgroundColor: new ThemeColor(COLOURS.added),
    margin: "0 0 0 2px",
    textDecoration: "none; border-radius: 2px",
  };
}

/** Where new lines stand: from a column of a line of the document on, so wide. */
interface Box {
  readonly line: number;
  readonly column: number;
  readonly width: number;
  readonly lines: readonly string[];
}

/** New lines to the right of those beside which they come; beside empty lines, at their own indentation. */
function box(editor: TextEditor, offset: number, block: Block, tabSize: number): Box {
  const line = offset + block.first;
  const bottom = Math.min(line + block.lines.length, editor.document.lineCount);
  const widths = Array.from({ length: bottom - line }, (_, index) => widthOf(editor, line + index, tabSize));
  const lines = block.lines.map((each) => expanded(each, tabSize));
  const indents = lines.filter((each) => each.trim()).map((each) => each.length - each.trimStart().length);
  const indent = indents.length > 0 ? Math.min(...indents) : 0;
  const widest = Math.max(...widths, 0);
  const column = Math.max(indent - PADDING_COLUMNS, widest > 0 ? widest + GAP_COLUMNS : 0);
  const width = Math.max(...lines.map((each) => each.length - indent)) + 2 * PADDING_COLUMNS;
  return { line, column, width, lines: lines.map((each) => each.slice(indent)) };
}

/** A box is out of the text's flow, on a background of its own, so that it never covers half of a line. */
function boxed(editor: TextEditor, { line, column, lines }: Box, tabSize: number): DecorationOptions {
  const css = [
    `content: '${lines.map(quoted).join("\\A ")}'`,
    "position: absolute; white-space: pre; z-index: 5; border-radius: 3px; box-sizing: content-box",
    `padding: 0 ${PADDING_COLUMNS.toFixed()}ch`,
    `margin-left: ${(column - widthOf(editor, line, tabSize)).toFixed()}ch`,
    `background: linear-gradient(${variable(COLOURS.added)}, ${variable(COLOURS.added)}), var(--vscode-editor-background)`,
    `box-shadow: -2px 0 0 ${variable(COLOURS.addedText)}`,
  ];
  const color = new ThemeColor(COLOURS.addedText);
  const before = { contentText: " ", color, textDecoration: `none; ${css.join("; ")}` };
  const { end } = editor.document.lineAt(line).range;
  return { range: new Range(end, end), renderOptions: { before } };
}

/** How many columns a line takes. */
function widthOf(editor: TextEditor, line: number, tabSize: number): number {
  return expanded(editor.document.lineAt(line).text, tabSize).length;
}

/** A line inside a string of CSS. */
function quoted(line: string): string {
  return line.replace(/[\\'"{};<>@/*]/g, (character) => `\\${character.codePointAt(0)?.toString(16) ?? ""} `);
}

function border(width: string) {
  return { isWholeLine: true, borderStyle: "solid", borderWidth: width, borderColor: new ThemeColor(COLOURS.addedText) };
}
