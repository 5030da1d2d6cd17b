import { share } from "./offer";
import { MarkdownString, StatusBarAlignment, ThemeColor, window, type Disposable } from "vscode";

/** The server's status, as in `didChangeStatus`; the optional fields come from `mercury/status`. */
export interface Status {
  readonly kind: "Normal" | "Warning" | "Error" | "Inactive";
  readonly busy: boolean;
  readonly message: string;
  readonly version?: string;
  readonly engine?: { readonly name: string; readonly device: string; readonly backend: string; readonly whyNotGpu?: string };
  readonly languageId?: string;
  readonly suggests?: boolean;
  /** Why nothing is suggested in the document. */
  readonly why?: string;
}

type Word = "loading" | "ready" | "off" | "off here" | "error";

const ICONS: Record<Word, string> = {
  loading: "loading~spin",
  ready: "sparkle",
  off: "circle-slash",
  "off here": "circle-slash",
  error: "error",
};

export const STARTING: Status = { kind: "Normal", busy: true, message: "starting the server" };

/** An error; the message says how to fix it. */
export function problem(message: string): Status {
  return { kind: "Error", busy: false, message };
}

function wordFor(status: Status): Word {
  if (status.kind === "Error" || status.kind === "Warning") return "error";
  if (status.kind === "Inactive") return "off";
  // Loading the model has a message; a slow suggestion has none.
  if (status.busy && status.message) return "loading";
  return status.suggests === false ? "off here" : "ready";
}

/** One line for the user: the word, then the reason or the model. */
export function sentence(status: Status): string {
  const word = wordFor(status);
  if (word === "off here") return `off here: ${status.why ?? "nothing is suggested in this document"}`;
  if (status.message) return `${word}: ${status.message}`;
  return status.engine ? `${word}: ${status.engine.name} on ${status.engine.device}` : word;
}

/** The item in the status bar; a click opens the menu. */
export class StatusItem implements Disposable {
  private readonly item = window.createStatusBarItem("status", StatusBarAlignment.Right, 100);

  constructor() {
    this.item.name = "Mercury";
    this.item.command = "mercury.menu";
  }

  show(status: Status): void {
    const word = wordFor(status);
    this.item.text = `$(${ICONS[word]}) Mercury${share(status.message)}`;
    this.item.tooltip = tooltip(status);
    this.item.accessibilityInformation = { label: `Mercury ${sentence(status)}`, role: "button" };
    this.item.backgroundColor = word === "error" ? new ThemeColor("statusBarItem.errorBackground") : undefined;
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
  }
}

function tooltip(status: Status): MarkdownString {
  const text = new MarkdownString("**Mercury** ").appendText(sentence(status));
  if (status.engine && status.version) {
    text.appendMarkdown("\n\n").appendText(`mercury-lsp ${status.version}, ${status.engine.backend}`);
  }
  if (status.engine?.whyNotGpu) {
    text.appendMarkdown("\n\n").appendText(`The GPU is not used: ${status.engine.whyNotGpu}`);
  }
  return text;
}
