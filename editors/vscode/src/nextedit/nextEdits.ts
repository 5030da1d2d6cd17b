import {
  CancellationTokenSource,
  Position,
  Range,
  Selection,
  TextEditorRevealType,
  window,
  workspace,
  type Disposable,
  type TextDocument,
  type TextEditor,
} from "vscode";
import { DOCUMENTS, serves, type Server } from "../server";
import { areNextEditsWanted } from "../settings";
import { accept, ask, reject } from "./asking";
import { NONE, setContexts } from "./contexts";
import { Diagnostics } from "./diagnostics";
import { Drawing } from "./drawing";
import { Highlights } from "./highlights";
import { Following } from "./following";
import { part, type Amount } from "./part";
import { changedLines, endOf, fits, placeAt, rest, type Pending } from "./pending";
import { keyHint } from "./pointer";
import { Preview } from "./preview";
import { isOn, NOWHERE, tabMeaning, type Lines } from "./tab";

/** Quiet time after a key or a move of the cursor before the server is asked. */
const PAUSE_MS = 120;

/** The next edit of the active editor: asked for, drawn, and applied by key. */
export class NextEdits implements Disposable {
  private readonly drawing = new Drawing();
  private readonly preview = new Preview(DOCUMENTS, (document) => this.editOf(document));
  private readonly diagnostics: Diagnostics;
  private readonly highlights: Highlights;
  private readonly listening: Disposable[];
  private edit: Pending | undefined;
  private editor: TextEditor | undefined;
  private jumpedTo: Position | undefined;
  private readonly following = new Following();
  private timer: NodeJS.Timeout | undefined;
  private asking: CancellationTokenSource | undefined;
  /** Where the server was asked last; a place is not asked about twice. */
  private asked = "";
  /** Whether there is anything that a next edit could follow from. */
  private isEdited = false;
  private isApplying = false;
  private isOpening = false;

  constructor(private readonly server: Server) {
    this.diagnostics = new Diagnostics(server);
    this.highlights = new Highlights(server);
    this.listening = [
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) this.changed(document);
      }),
      window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor)),
      window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => {
        if (textEditor === this.editor) this.update();
      }),
      window.onDidChangeActiveTextEditor((editor) => {
        if (!this.isOpening && editor !== this.editor) this.restart();
      }),
      workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("mercury")) this.restart();
      }),
    ];
  }

  /** The edit that is shown, if its document still has the text that it was made for. */
  get pending(): { readonly editor: TextEditor; readonly edit: Pending; readonly document: TextDocument } | undefined {
    const { editor, edit } = this;
    if (!editor || !edit || editor !== window.activeTextEditor) return undefined;
    const document = workspace.textDocuments.find((each) => fits(edit, each));
    return document && { editor, edit, document };
  }

  /** Put the cursor at the edit, in the file where it is; whether there is one. */
  async jump(): Promise<boolean> {
    const found = this.pending;
    if (!found) return false;
    const { edit, document } = found;
    const { line, character } = placeAt(edit, edit.pieces[0]?.start ?? 0);
    const at = new Position(line, character);
    let { editor } = found;
    if (document !== editor.document) {
      editor = await this.open(document, at);
      if (!fits(edit, document)) return true;
    } else editor.selection = new Selection(at, at);
    this.jumpedTo = at;
    const [first, last] = changedLines(edit);
    editor.revealRange(new Range(first, 0, last, 0), TextEditorRevealType.InCenterIfOutsideViewport);
    if (editor !== found.editor) this.show(editor, edit);
    else this.update();
    return true;
  }

  /** Make the edit, or its first word or line; whether there is one. What is left, or the next edit, is drawn at once. */
  async apply(amount?: Amount): Promise<boolean> {
    const found = this.pending;
    if (!found || this.isApplying) return found !== undefined;
    const { editor, edit, document } = found;
    if (document !== editor.document) return this.jump();
    const made = amount ? part(edit.old, edit.pieces, amount) : edit.pieces;
    const end = endOf(edit, made);
    this.isApplying = true;
    try {
      // VS Code refuses it if the text has changed meanwhile.
      const isMade = await editor.edit((builder) => {
        for (const { start, end, text } of made) {
          const [from, to] = [placeAt(edit, start), placeAt(edit, end)];
          builder.replace(new Range(from.line, from.character, to.line, to.character), text);
        }
      });
      if (!isMade) return true;
      const at = new Position(end.line, end.character);
      this.jumpedTo = at;
      editor.selection = new Selection(at, at);
      editor.revealRange(new Range(at, at));
    } finally {
      this.isApplying = false;
    }
    const left = rest(edit, made, document.version);
    if (left && fits(left, document)) this.show(editor, left);
    else {
      void accept(this.server, edit);
      this.clear();
      this.follow();
    }
    return true;
  }

  /** Wait for the edit after the one just made, then go on to it; whether there is one, or the user went on otherwise. */
  async goOn(): Promise<boolean> {
    if (!this.following.isOn) return false;
    if (!(await this.following.settled())) return true;
    const tab = this.pending ? this.tab() : "indent";
    if (tab === "apply") return this.apply();
    return tab === "jump" && this.jump();
  }

  /** Ask for the next edit at once. Tab, pressed in a row, waits for it and types nothing. */
  private follow(): void {
    this.following.begin(this.ask(), () => {
      if (!this.edit) setContexts(NONE);
    });
    if (!this.edit) setContexts({ ...NONE, nextEditTab: "apply" });
  }

  /** Make the renaming in all places that are left, in one step to undo. */
  async applyAll(): Promise<boolean> {
    const all = this.pending?.edit.renaming?.applyAll;
    if (!all) return false;
    this.clear();
    await this.server.run(all.command, () => all.arguments[0]);
    return true;
  }

  /** Do not offer the edit again; others are offered once the text changes or the cursor goes to another line. */
  dismiss(): void {
    const { edit, editor } = this;
    if (!edit || !editor) return;
    void reject(this.server, edit);
    this.clear();
    this.asked = placeOf(editor);
  }

  /** Compare the file with what the edit would make of it; whether there is one. */
  async compare(): Promise<boolean> {
    const found = this.pending;
    if (found) await this.preview.open(found.document, found.edit);
    return found !== undefined;
  }

  dispose(): void {
    this.clear();
    const parts = [this.diagnostics, this.highlights, this.drawing, this.preview];
    for (const each of [...this.listening, ...parts]) each.dispose();
  }

  private editOf(document: TextDocument): Pending | undefined {
    const found = this.pending;
    return found?.document === document ? found.edit : undefined;
  }

  /** Show another document; its change of the active editor is ours. */
  private async open(document: TextDocument, at: Position): Promise<TextEditor> {
    this.isOpening = true;
    try {
      return await window.showTextDocument(document, { selection: new Range(at, at) });
    } finally {
      this.isOpening = false;
    }
  }

  private changed(document: TextDocument): void {
    if (!serves(document)) return;
    this.isEdited = true;
    const isShown = document === window.activeTextEditor?.document || document.uri.toString() === this.edit?.uri;
    if (isShown && !this.isApplying) this.restart();
  }

  private moved(editor: TextEditor): void {
    if (this.isApplying || editor !== window.activeTextEditor) return;
    if (this.edit) this.update();
    else if (placeOf(editor) !== this.asked) this.askSoon();
  }

  /** Forget what is drawn and what was asked, and ask after a pause. */
  private restart(): void {
    this.clear();
    this.asked = "";
    this.askSoon();
  }

  private askSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), PAUSE_MS);
  }

  private async ask(): Promise<void> {
    this.stopAsking();
    const editor = window.activeTextEditor;
    if (!editor || !this.isEdited || !serves(editor.document) || editor.selections.length > 1 || !areNextEditsWanted()) return;
    this.asked = placeOf(editor);
    const { token } = (this.asking = new CancellationTokenSource());
    const edit = await ask(this.server, editor, token);
    if (token.isCancellationRequested || editor !== window.activeTextEditor) return;
    if (edit) this.show(editor, edit);
  }

  private stopAsking(): void {
    clearTimeout(this.timer);
    this.asking?.cancel();
    this.asking?.dispose();
    this.asking = undefined;
  }

  private show(editor: TextEditor, edit: Pending): void {
    this.editor = editor;
    this.edit = edit;
    this.drawing.show(editor, edit);
    this.update();
  }

  /** Show where the edit is, and say what the keys do, for the cursor as it is now. */
  private update(): void {
    const { edit, editor } = this;
    if (!edit || !editor) return;
    const { active } = editor.selection;
    if (!this.jumpedTo?.isEqual(active)) this.jumpedTo = undefined;
    const lines = linesIn(editor, edit);
    const tab = this.tab();
    this.drawing.point(editor, edit, keyHint(editor, tab));
    setContexts({
      ...NONE,
      nextEditVisible: true,
      nextEditIsRenaming: (edit.renaming?.remaining ?? 0) > 1,
      nextEditAtCursor: isOn(active.line, lines),
      nextEditEntered: this.jumpedTo !== undefined,
      nextEditTab: tab,
    });
  }

  /** What Tab does, for the cursor as it is now. */
  private tab(): ReturnType<typeof tabMeaning> {
    const { edit, editor } = this;
    if (!edit || !editor) return "indent";
    const { active } = editor.selection;
    const before = editor.document.lineAt(active.line).text.slice(0, active.character);
    return tabMeaning({ line: active.line, before, hasJumped: this.jumpedTo !== undefined }, linesIn(editor, edit));
  }

  private clear(): void {
    this.stopAsking();
    this.following.end();
    this.drawing.clear();
    this.edit = this.editor = this.jumpedTo = undefined;
    setContexts(NONE);
  }
}

/** The lines of an edit in an editor. */
function linesIn(editor: TextEditor, edit: Pending): Lines {
  return edit.uri === editor.document.uri.toString() ? changedLines(edit) : NOWHERE;
}

/** A line of a version of a document. */
function placeOf({ document, selection }: TextEditor): string {
  return `${document.uri.toString()} ${document.version.toFixed()} ${selection.active.line.toFixed()}`;
}
