import { languages, workspace, type Disposable, type TextDocument, type Uri } from "vscode";
import { serves, type Server } from "../server";
import { areNextEditsWanted } from "../settings";
import { forwarded } from "./forwarded";

/** The server's notification of what others report. */
const METHOD = "mercury/didChangeDiagnostics";

/** Quiet time after a report before it is forwarded: several extensions may report the same document. */
const PAUSE_MS = 150;

/** Forwards the errors of other extensions, by which the server knows what an edit broke. */
export class Diagnostics implements Disposable {
  private readonly timers = new Map<string, NodeJS.Timeout>();
  /** The documents that something was reported of, perhaps that nothing is wrong, before the server ran. */
  private readonly waiting = new Map<string, Uri>();
  private readonly listening: Disposable[];

  constructor(private readonly server: Server) {
    this.listening = [
      languages.onDidChangeDiagnostics(({ uris }) => this.changed(uris)),
      server.onDidStart(() => {
        this.changed([...this.waiting.values(), ...reported()]);
        this.waiting.clear();
      }),
      workspace.onDidCloseTextDocument(({ uri }) => this.forget(uri)),
    ];
  }

  dispose(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    for (const each of this.listening) each.dispose();
  }

  private changed(uris: readonly Uri[]): void {
    for (const uri of uris) {
      const document = workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
      if (document && serves(document)) this.forwardSoon(document);
    }
  }

  /** If the document changes meanwhile, what was reported is about an older text, and others will report again. */
  private forwardSoon(document: TextDocument): void {
    const { uri, version } = document;
    this.forget(uri);
    const timer = setTimeout(() => {
      this.forget(uri);
      if (!document.isClosed && document.version === version) void this.forward(document);
    }, PAUSE_MS);
    this.timers.set(uri.toString(), timer);
  }

  private forget(uri: Uri): void {
    clearTimeout(this.timers.get(uri.toString()));
    this.timers.delete(uri.toString());
  }

  private async forward(document: TextDocument): Promise<void> {
    if (!this.server.isRunning) this.waiting.set(document.uri.toString(), document.uri);
    if (!areNextEditsWanted() || !this.server.takesDiagnostics) return;
    await this.server.notify(METHOD, (client) => ({
      textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
      diagnostics: forwarded(languages.getDiagnostics(document.uri)),
    }));
  }
}

/** The documents of which something is reported already; of another one that may still come. */
function reported(): Uri[] {
  return languages.getDiagnostics().flatMap(([uri, found]) => (found.length > 0 ? [uri] : []));
}
