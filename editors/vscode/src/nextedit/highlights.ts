import { commands, window, type DocumentHighlight, type Disposable, type Position, type TextEditor } from "vscode";
import { serves, type Server } from "../server";
import { areNextEditsWanted } from "../settings";
import { known } from "./known";

/** The server's notification of where the name at the cursor stands. */
const METHOD = "mercury/didChangeHighlights";

/** How long the cursor rests before others are asked. */
const PAUSE_MS = 100;

/**
 * Forwards where other extensions see the name at the cursor, so that a renaming that the user begins goes on there.
 * They are asked before the change, after which they would not know what belongs together.
 */
export class Highlights implements Disposable {
  private timer: NodeJS.Timeout | undefined;
  private readonly listening: Disposable;

  constructor(private readonly server: Server) {
    this.listening = window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listening.dispose();
  }

  private moved(editor: TextEditor): void {
    clearTimeout(this.timer);
    if (!areNextEditsWanted() || !this.server.takesHighlights || !serves(editor.document)) return;
    this.timer = setTimeout(() => void this.forward(editor, editor.selection.active), PAUSE_MS);
  }

  private async forward(editor: TextEditor, at: Position): Promise<void> {
    const { document } = editor;
    const { uri, version } = document;
    if (!document.getWordRangeAtPosition(at)) return;
    const found = await commands.executeCommand<DocumentHighlight[] | undefined>("vscode.executeDocumentHighlights", uri, at);
    const highlights = known(found ?? []);
    if (highlights.length === 0 || document.isClosed || document.version !== version) return;
    await this.server.notify(METHOD, (client) => ({
      textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
      highlights,
    }));
  }
}
