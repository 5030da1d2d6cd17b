import {
  commands,
  InlineCompletionTriggerKind,
  Range,
  ThemeColor,
  window,
  workspace,
  type CancellationToken,
  type Disposable,
  type InlineCompletionContext,
  type InlineCompletionItem,
  type InlineCompletionList,
  type Position,
  type ProviderResult,
  type TextDocument,
} from "vscode";
import { goesOn, restOf, textOf } from "./marked";

type Answer = InlineCompletionItem[] | InlineCompletionList | null | undefined;

/** A text that the server has found and the editor does not show. */
interface Marked {
  readonly document: TextDocument;
  readonly version: number;
  readonly position: Position;
  readonly items: InlineCompletionItem[];
}

/** With `mercury.display` "subtle", a mark says that there is a text, and a command shows it. */
export class Subtle implements Disposable {
  private marked: Marked | undefined;
  private isRevealing = false;
  /** The text that the user has had shown last. */
  private shown = "";
  private readonly mark = window.createTextEditorDecorationType({
    after: { contentText: " …", color: new ThemeColor("editorGhostText.foreground") },
  });
  private readonly listening = [
    window.onDidChangeTextEditorSelection(() => this.follow()),
    window.onDidChangeActiveTextEditor(() => this.clear()),
  ];

  constructor(private readonly report: (shown: InlineCompletionItem) => void) {}

  /** What the editor gets to show: nothing while a text is only marked. */
  async answer(
    document: TextDocument,
    position: Position,
    context: InlineCompletionContext,
    token: CancellationToken,
    ask: () => ProviderResult<InlineCompletionItem[] | InlineCompletionList>,
  ): Promise<Answer> {
    if (workspace.getConfiguration("mercury").get("display") !== "subtle") {
      if (this.marked) this.clear();
      return ask();
    }
    const revealed = this.revealed(document, position);
    if (revealed) return revealed;
    const answer = await ask();
    if (token.isCancellationRequested) return answer;
    const items = itemsOf(answer);
    const [first] = items;
    const isAsked = context.triggerKind === InlineCompletionTriggerKind.Invoke;
    this.clear();
    const text = first ? textOf(first) : "";
    this.shown = isAsked || goesOn(this.shown, text) ? text : "";
    if (!first || this.shown) return answer;
    this.marked = { document, version: document.version, position, items };
    this.draw(position);
    return undefined;
  }

  /** Show the text that is marked, or ask for one. */
  async reveal(): Promise<void> {
    this.isRevealing = true;
    await commands.executeCommand("editor.action.inlineSuggest.trigger");
  }

  dispose(): void {
    for (const each of [...this.listening, this.mark]) each.dispose();
  }

  private revealed(document: TextDocument, position: Position): InlineCompletionItem[] | undefined {
    const { marked, isRevealing } = this;
    this.isRevealing = false;
    if (!isRevealing || marked?.document !== document || marked.version !== document.version) return undefined;
    const [first] = marked.items;
    if (!first || !marked.position.isEqual(position)) return undefined;
    this.clear();
    this.shown = textOf(first);
    this.report(first);
    return marked.items;
  }

  /** The mark stays while the text is typed. */
  private follow(): void {
    const { marked } = this;
    const editor = window.activeTextEditor;
    if (!marked || !editor || editor.document !== marked.document) return;
    const { active } = editor.selection;
    const [first] = marked.items;
    const typed = editor.document.getText(new Range(marked.position, active));
    const isBehind = active.isAfterOrEqual(marked.position);
    if (!first || !isBehind || restOf(textOf(first), typed) === undefined) this.clear();
    else this.draw(active);
  }

  private draw(position: Position): void {
    window.activeTextEditor?.setDecorations(this.mark, [new Range(position, position)]);
  }

  private clear(): void {
    this.marked = undefined;
    for (const editor of window.visibleTextEditors) editor.setDecorations(this.mark, []);
  }
}

function itemsOf(answer: Answer): InlineCompletionItem[] {
  if (!answer) return [];
  return Array.isArray(answer) ? answer : answer.items;
}
