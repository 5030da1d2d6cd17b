import {
  commands,
  EventEmitter,
  Hover,
  languages,
  MarkdownString,
  Position,
  Range,
  Uri,
  workspace,
  type Disposable,
  type DocumentSelector,
  type TextDocument,
} from "vscode";
import { placeAt, type Pending } from "./pending";

/** The scheme of documents that show what an edit would make of a file. */
const SCHEME = "mercury-next-edit";

const LINKS = [
  ["Apply", "mercury.applyNextEdit"],
  ["Dismiss", "mercury.dismissNextEdit"],
  ["Preview", "mercury.previewNextEdit"],
] as const;
const RENAME_ALL = ["Rename all", "mercury.applyAllNextEdits"] as const;

/** An edit in words and as a whole: a hover over it, and a comparison of the file before and after. */
export class Preview implements Disposable {
  private readonly changed = new EventEmitter<Uri>();
  private readonly registered: Disposable[];
  private text = "";

  constructor(documents: DocumentSelector, current: (document: TextDocument) => Pending | undefined) {
    this.registered = [
      workspace.registerTextDocumentContentProvider(SCHEME, {
        onDidChange: this.changed.event,
        provideTextDocumentContent: () => this.text,
      }),
      languages.registerHoverProvider(documents, {
        provideHover: (document, position) => {
          const edit = current(document);
          return edit && isOver(edit, position) ? new Hover(described(edit)) : undefined;
        },
      }),
    ];
  }

  /** Compare the document with what it would be. */
  async open(document: TextDocument, edit: Pending): Promise<void> {
    const last = edit.line + edit.old.split("\n").length - 1;
    const end = document.lineAt(last).range.end;
    const whole = new Range(new Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
    this.text =
      document.getText(new Range(whole.start, new Position(edit.line, 0))) +
      edit.text +
      document.getText(new Range(end, whole.end));
    const after = Uri.from({ scheme: SCHEME, path: document.uri.path });
    this.changed.fire(after);
    const name = document.uri.path.split("/").at(-1) ?? "";
    await commands.executeCommand("vscode.diff", document.uri, after, `${name}: next edit`, { preview: true });
  }

  dispose(): void {
    for (const each of [...this.registered, this.changed]) each.dispose();
  }
}

function isOver(edit: Pending, position: Position): boolean {
  return edit.pieces.some(({ start, end }) => {
    const [first, last] = [placeAt(edit, start), placeAt(edit, end)];
    return new Range(first.line, first.character, last.line, last.character).contains(position);
  });
}

function described(edit: Pending): MarkdownString {
  const marked = (text: string, sign: string) => text.split("\n").map((line) => `${sign}${line}`);
  const lines = [...marked(edit.old, "-"), ...marked(edit.text, "+")].join("\n");
  const links = [...LINKS, ...((edit.renaming?.remaining ?? 0) > 1 ? [RENAME_ALL] : [])];
  const text = new MarkdownString("", true);
  text.isTrusted = { enabledCommands: links.map(([, command]) => command) };
  text.appendMarkdown("**Mercury** ").appendText(edit.renaming?.label ?? "next edit");
  text.appendCodeblock(lines, "diff");
  return text.appendMarkdown(links.map(([label, command]) => `[${label}](command:${command})`).join(" · "));
}
