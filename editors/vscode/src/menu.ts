import { commands, QuickPickItemKind, Uri, window, workspace, type QuickPickItem } from "vscode";
import { changedLines, type Pending } from "./nextedit/pending";
import { fileOf } from "./nextedit/tab";
import { type Offer } from "./offer";
import { serves } from "./server";
import { sentence, type Status } from "./status";

interface Choice extends QuickPickItem {
  readonly command?: string;
  /** Whether the user goes on in the editor; after a click the status bar has the focus. */
  readonly isInEditor?: boolean;
}

/** The next edit that is shown in the active editor. */
interface Shown {
  readonly pending?: { readonly edit: Pending } | undefined;
}

/** The command that shows the question about a larger model again; it is in the menu only. */
export const ASK_AGAIN = "mercury.askAgain";

/** The menu behind the status item; it leads to the next edit, and to a question that waits for an answer. */
export async function showMenu(status: Status, shown: Shown, offered?: Offer): Promise<void> {
  const choices = [...switches(), ...nextEdits(shown), SEPARATOR, ...question(offered), ...TOOLS];
  const chosen = await window.showQuickPick(choices, { title: "Mercury", placeHolder: sentence(status) });
  if (chosen?.isInEditor) await commands.executeCommand("workbench.action.focusActiveEditorGroup");
  if (chosen?.command) await commands.executeCommand(chosen.command);
}

function question(offered?: Offer): Choice[] {
  return offered ? [{ label: "$(cloud-download) Download a larger model…", description: offered.name, command: ASK_AGAIN }] : [];
}

function switches(): Choice[] {
  const section = workspace.getConfiguration("mercury");
  if (!section.get("enabled")) return [{ label: "$(check) Switch on", command: "mercury.toggle" }];
  const everywhere = { label: "$(circle-slash) Switch off", command: "mercury.toggle" };
  const document = window.activeTextEditor?.document;
  if (!document || !serves(document)) return [everywhere];
  const isOff = section.get<string[]>("disabledLanguages", []).includes(document.languageId);
  const label = isOff ? "$(check) Switch on" : "$(circle-slash) Switch off";
  return [everywhere, { label: `${label} for ${document.languageId}`, command: "mercury.toggleLanguage" }];
}

function nextEdits(shown: Shown): Choice[] {
  const section = workspace.getConfiguration("mercury");
  if (!section.get("enabled")) return [];
  const separator = { label: "next edits", kind: QuickPickItemKind.Separator };
  const command = "mercury.toggleNextEdits";
  if (!section.get("nextEdits")) return [separator, { label: "$(check) Switch next edits on", command }];
  const leading = ways(shown).map((each) => ({ ...each, isInEditor: true }));
  return [separator, ...leading, { label: "$(circle-slash) Switch next edits off", command }];
}

/** What leads on: to the edit that is shown; otherwise the server is asked for one. */
function ways({ pending }: Shown): Choice[] {
  if (!pending) return [{ label: "$(search) Look for a next edit", command: "mercury.applyNextEdit" }];
  const { renaming, uri } = pending.edit;
  const label = `$(arrow-right) Go to the next edit, ${where(uri, changedLines(pending.edit)[0])}`;
  const command = "mercury.jumpToNextEdit";
  return [{ label, description: renaming?.label ?? "", command }, ...all(renaming?.remaining ?? 0)];
}

function all(remaining: number): Choice[] {
  const label = `$(replace-all) Rename all ${remaining.toFixed()} remaining`;
  return remaining > 1 ? [{ label, command: "mercury.applyAllNextEdits" }] : [];
}

/** A line, counted from 0, and its file if that is another one. */
function where(uri: string, line: number): string {
  const isHere = window.activeTextEditor?.document.uri.toString() === Uri.parse(uri).toString();
  return `${isHere ? "" : `${fileOf(uri)}, `}line ${(line + 1).toFixed()}`;
}

const SEPARATOR: Choice = { label: "", kind: QuickPickItemKind.Separator };

const TOOLS: readonly Choice[] = [
  { label: "$(package) Choose model", command: "mercury.chooseModel" },
  { label: "$(question) Explain why nothing is shown", command: "mercury.explain" },
  { label: "$(graph) Show statistics", command: "mercury.showStatistics" },
  { label: "$(pulse) Run doctor", command: "mercury.runDoctor" },
  { label: "$(output) Show log", command: "mercury.showLog" },
  { label: "$(refresh) Restart server", command: "mercury.restart" },
];
