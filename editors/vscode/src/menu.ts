import { commands, QuickPickItemKind, window, workspace, type QuickPickItem } from "vscode";
import { changedLines, type Pending } from "./nextedit/pending";
import { fileOf } from "./nextedit/tab";
import { serves } from "./server";
import { sentence, type Status } from "./status";

interface Choice extends QuickPickItem {
  readonly command?: string;
}

/** The menu behind the status item; it leads to the next edit that is drawn. */
export async function showMenu(status: Status, drawn?: { readonly edit: Pending }): Promise<void> {
  const choices = [...switches(), ...nextEdits(drawn?.edit), ...TOOLS];
  const chosen = await window.showQuickPick(choices, { title: "Mercury", placeHolder: sentence(status) });
  if (chosen?.command) await commands.executeCommand(chosen.command);
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

function nextEdits(edit: Pending | undefined): Choice[] {
  const section = workspace.getConfiguration("mercury");
  if (!section.get("enabled")) return [];
  const separator = { label: "next edits", kind: QuickPickItemKind.Separator };
  const command = "mercury.toggleNextEdits";
  if (!section.get("nextEdits")) return [separator, { label: "$(check) Switch next edits on", command }];
  const off = { label: "$(circle-slash) Switch next edits off", command };
  if (!edit) return [separator, off];
  const isHere = window.activeTextEditor?.document.uri.toString() === edit.uri;
  const place = `${isHere ? "" : `${fileOf(edit.uri)}, `}line ${(changedLines(edit)[0] + 1).toFixed()}`;
  const label = `$(arrow-right) Go to the next edit, ${place}`;
  const description = edit.renaming?.label ?? "";
  const jump = { label, description, command: "mercury.jumpToNextEdit" };
  const remaining = edit.renaming?.remaining ?? 0;
  if (remaining < 2) return [separator, jump, off];
  const all = `$(replace-all) Rename all ${remaining.toFixed()} remaining`;
  return [separator, jump, { label: all, command: "mercury.applyAllNextEdits" }, off];
}

const TOOLS: readonly Choice[] = [
  { label: "", kind: QuickPickItemKind.Separator },
  { label: "$(package) Choose model", command: "mercury.chooseModel" },
  { label: "$(graph) Show statistics", command: "mercury.showStatistics" },
  { label: "$(pulse) Run doctor", command: "mercury.runDoctor" },
  { label: "$(output) Show log", command: "mercury.showLog" },
  { label: "$(refresh) Restart server", command: "mercury.restart" },
];
