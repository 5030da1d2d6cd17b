import {
  Range,
  ThemeColor,
  Uri,
  window,
  workspace,
  type DecorationOptions,
  type Disposable,
  type TextEditor,
  type TextEditorDecorationType,
  type ThemableDecorationAttachmentRenderOptions,
} from "vscode";
import { hintLine, isOn, pointed, type Lines, type Where } from "./tab";

/** The colours that package.json declares. */
const COLOURS = {
  hint: "mercury.nextEditHintForeground",
  hintBackground: "mercury.nextEditHintBackground",
  hintBorder: "mercury.nextEditHintBorder",
} as const;

/** Columns between a line, or new lines beside it, and the hint. */
const GAP_COLUMNS = 2;

/** Size of the hint, in that of the text. */
const CHIP_SIZE = 0.85;

/** The arrow in the gutter; VS Code takes no theme colour there. */
const ARROWS = {
  here: "M3 8h9M8.5 4 12.5 8l-4 4",
  above: "M8 13V4M4 7.5 8 3.5l4 4",
  below: "M8 3v9M4 8.5l4 4 4-4",
} as const;

type Arrow = keyof typeof ARROWS;

/** What is pointed to. */
export interface Target {
  readonly uri: string;
  readonly lines: Lines;
  readonly where: Where;
  /** What the hint says after the place; empty words are left out. */
  readonly words: readonly string[];
}

/** A hint at the end of a line, and an arrow in its gutter, that say where something is. */
export class Pointer implements Disposable {
  private readonly hint = window.createTextEditorDecorationType({});
  private readonly arrows = { here: arrow("here"), above: arrow("above"), below: arrow("below") };
  private editor: TextEditor | undefined;

  /** Point from the target if it is in view, else from the cursor; `boxEnds` are columns taken after lines. */
  show(editor: TextEditor, { uri, lines, where, words }: Target, boxEnds: ReadonlyMap<number, number> = new Map()): void {
    if (this.editor !== editor) this.clear();
    this.editor = editor;
    const cursor = editor.selection.active.line;
    const at = where === "here" ? lines[0] : hintLine(where, cursor, viewOf(editor));
    const text = [pointed(where, uri, lines[0]), ...words].filter((each) => each).join(" · ");
    editor.setDecorations(this.hint, text ? [endOfLine(editor, at, chip(text, (boxEnds.get(at) ?? 0) + GAP_COLUMNS))] : []);
    const shown = where === "here" && isOn(cursor, lines) ? undefined : where === "elsewhere" ? "here" : where;
    for (const [name, type] of Object.entries(this.arrows)) {
      editor.setDecorations(type, name === shown ? [new Range(at, 0, at, 0)] : []);
    }
  }

  clear(): void {
    for (const type of this.types()) this.editor?.setDecorations(type, []);
    this.editor = undefined;
  }

  dispose(): void {
    for (const type of this.types()) type.dispose();
  }

  private types(): TextEditorDecorationType[] {
    return [this.hint, ...Object.values(this.arrows)];
  }
}

/** The lines in view, folded ones left out. */
export function viewOf(editor: TextEditor): Lines[] {
  return editor.visibleRanges.map((range): Lines => [range.start.line, range.end.line]);
}

/** Spaces that are neither joined nor dropped. */
export function unbroken(text: string): string {
  return text.replaceAll(" ", "\u00a0");
}

export function variable(colour: string): string {
  return `var(--vscode-${colour.replaceAll(".", "-")})`;
}

/** What the key does; empty while text is selected, while the key indents, and without a name of the key. */
export function keyHint(editor: TextEditor, tab: "jump" | "apply" | "indent"): string {
  const key = workspace.getConfiguration("mercury").get<string>("nextEditKey", "");
  return key === "" || !editor.selection.isEmpty || tab === "indent" ? "" : `${key} to ${tab}`;
}

function endOfLine(editor: TextEditor, line: number, after: ThemableDecorationAttachmentRenderOptions): DecorationOptions {
  const { end } = editor.document.lineAt(line).range;
  return { range: new Range(end, end), renderOptions: { after } };
}

/** A word at the end of a line, so many columns after it. */
function chip(text: string, columns: number): ThemableDecorationAttachmentRenderOptions {
  return {
    contentText: unbroken(text),
    color: new ThemeColor(COLOURS.hint),
    backgroundColor: new ThemeColor(COLOURS.hintBackground),
    border: `1px solid ${variable(COLOURS.hintBorder)}`,
    margin: `0 0 0 ${(columns / CHIP_SIZE).toFixed(1)}ch`,
    textDecoration: `none; font-size: ${CHIP_SIZE.toFixed(2)}em; padding: 0 0.6em; border-radius: 3px`,
  };
}

function arrow(name: Arrow): TextEditorDecorationType {
  const icon = (colour: string) => ({ gutterIconPath: Uri.parse(`data:image/svg+xml;utf8,${encodeURIComponent(svg(name, colour))}`) });
  return window.createTextEditorDecorationType({ gutterIconSize: "75%", dark: icon("#75beff"), light: icon("#0063b2") });
}

function svg(name: Arrow, colour: string): string {
  const stroke = `fill="none" stroke="${colour}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><path ${stroke} d="${ARROWS[name]}"/></svg>`;
}
