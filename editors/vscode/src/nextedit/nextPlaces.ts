import {
  CancellationTokenSource,
  Position,
  Range,
  Selection,
  TextEditorRevealType,
  window,
  workspace,
  type Disposable,
  type TextEditor,
} from "vscode";
import { type Server } from "../server";
import { NONE, setContexts } from "./contexts";
import { isIn, type Place } from "./place";
import { keyHint, Pointer, viewOf } from "./pointer";
import { directionFrom, NOWHERE, tabMeaning } from "./tab";

/** The server's request for the line that the user probably edits next. */
const METHOD = "mercury/nextPlace";

/** Quiet time between an answer without an edit and the request for a place. */
const REST_MS = 400;

/** Where the next edit probably is when none is offered: pointed to from the cursor, and gone to by key. */
export class NextPlaces implements Disposable {
  private readonly pointer = new Pointer();
  private readonly listening: Disposable[];
  /** The editor that no next edit was found for. */
  private editor: TextEditor | undefined;
  private place: Place | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asking: CancellationTokenSource | undefined;
  /** After a jump or a dismissal nothing is pointed to until some text changes. */
  private isSpent = false;

  constructor(private readonly server: Server) {
    this.listening = [
      window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => {
        if (textEditor === this.editor) this.update();
      }),
      server.ghostText.onDidOffer(() => {
        if (this.isCovered()) this.hide();
      }),
    ];
  }

  /** The place that is pointed to from the active editor. */
  get shown(): Place | undefined {
    return this.editor === window.activeTextEditor ? this.place : undefined;
  }

  /** Ask for a place if text and cursor stay as they are; no next edit was found for them. */
  askSoon(editor: TextEditor): void {
    this.clear();
    if (this.isSpent || workspace.getConfiguration("mercury").get("nextPlaces") !== true) return;
    this.editor = editor;
    if (editor.selection.isEmpty) this.timer = setTimeout(() => void this.ask(editor), REST_MS);
  }

  /** The cursor went elsewhere in the line that no next edit was found for. */
  moved(): void {
    if (this.editor) this.askSoon(this.editor);
  }

  /** Some text has changed. */
  changed(): void {
    this.isSpent = false;
    this.clear();
  }

  /** Put the cursor at the place, in the file where it is; whether there is one. */
  async jump(): Promise<boolean> {
    const { editor, place } = this;
    if (!editor || !place || editor !== window.activeTextEditor) return false;
    this.dismiss();
    const document = workspace.textDocuments.find((each) => isIn(place, each));
    if (!document) return false;
    const at = new Position(place.position.line, place.position.character);
    if (document === editor.document) {
      editor.selection = new Selection(at, at);
      editor.revealRange(new Range(at, at), TextEditorRevealType.InCenterIfOutsideViewport);
    } else await window.showTextDocument(document, { selection: new Range(at, at) });
    return true;
  }

  /** Point to nothing until some text changes. */
  dismiss(): void {
    if (!this.place) return;
    this.isSpent = true;
    this.clear();
  }

  /** Forget the place, and what no edit was found for. */
  clear(): void {
    clearTimeout(this.timer);
    this.asking?.cancel();
    this.asking?.dispose();
    this.asking = undefined;
    this.hide();
    this.editor = undefined;
  }

  dispose(): void {
    this.clear();
    for (const each of [...this.listening, this.pointer]) each.dispose();
  }

  private async ask(editor: TextEditor): Promise<void> {
    const { document, selection } = editor;
    const { token } = (this.asking = new CancellationTokenSource());
    const place = await this.server.ask<Place | null>(
      METHOD,
      (client) => ({
        textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
        position: client.code2ProtocolConverter.asPosition(selection.active),
      }),
      token,
    );
    if (token.isCancellationRequested || !place || this.isCovered()) return;
    if (!workspace.textDocuments.some((each) => isIn(place, each))) return;
    this.place = place;
    this.update();
  }

  /** Whether ghost text is at the cursor. */
  private isCovered(): boolean {
    const { editor } = this;
    return editor !== undefined && this.server.ghostText.isAt(editor.document, editor.selection.active);
  }

  /** Point to the place, and say what the key does. */
  private update(): void {
    const { editor, place } = this;
    if (!editor || !place) return;
    const { document, selection } = editor;
    const { line } = place.position;
    const { active } = selection;
    const where = isIn(place, document) ? directionFrom(active.line, line, viewOf(editor)) : "elsewhere";
    const before = document.lineAt(active.line).text.slice(0, active.character);
    const tab = tabMeaning({ line: active.line, before, hasJumped: false }, NOWHERE);
    const words = [keyHint(editor, tab)];
    this.pointer.show(editor, { uri: place.textDocument.uri, lines: [line, line], where, words });
    setContexts({ ...NONE, nextPlaceVisible: true, nextEditTab: tab });
  }

  private hide(): void {
    if (!this.place) return;
    this.place = undefined;
    this.pointer.clear();
    setContexts(NONE);
  }
}
