import { EventEmitter, type Disposable, type Position, type TextDocument } from "vscode";
import { type Middleware } from "vscode-languageclient/node";

/** Where the server offered ghost text last. VS Code doesn't say what it shows, nor what other extensions offer. */
export class GhostText implements Disposable {
  private readonly offered = new EventEmitter<void>();
  readonly onDidOffer = this.offered.event;
  private last = "";

  /** Notes the server's answers. */
  readonly middleware: Middleware = {
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      const asked = keyOf(document, position);
      const answer = (await next(document, position, context, token)) ?? [];
      if (token.isCancellationRequested) return answer;
      this.last = (Array.isArray(answer) ? answer : answer.items).length > 0 ? asked : "";
      if (this.last) this.offered.fire();
      return answer;
    },
  };

  /** Whether it was offered at a position of a document as it is now. */
  isAt(document: TextDocument, position: Position): boolean {
    return this.last === keyOf(document, position);
  }

  dispose(): void {
    this.offered.dispose();
  }
}

function keyOf({ uri, version }: TextDocument, { line, character }: Position): string {
  return [uri.toString(), version, line, character].join(" ");
}
