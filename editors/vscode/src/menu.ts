import { commands, QuickPickItemKind, window, workspace, type QuickPickItem } from "vscode";
import { serves } from "./server";
import { sentence, type Status } from "./status";

interface Choice extends QuickPickItem {
  readonly command?: string;
}

/** The menu behind the status item. */
export async function showMenu(status: Status): Promise<void> {
  const choices = [...switches(), ...TOOLS];
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

const TOOLS: readonly Choice[] = [
  { label: "", kind: QuickPickItemKind.Separator },
  { label: "$(package) Choose model", command: "mercury.chooseModel" },
  { label: "$(graph) Show statistics", command: "mercury.showStatistics" },
  { label: "$(pulse) Run doctor", command: "mercury.runDoctor" },
  { label: "$(output) Show log", command: "mercury.showLog" },
  { label: "$(refresh) Restart server", command: "mercury.restart" },
];
