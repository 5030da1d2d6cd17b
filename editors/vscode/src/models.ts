import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { window, workspace, type QuickPickItem } from "vscode";
import { absence, find, type Program } from "./program";
import { isModelSet } from "./settings";

/** A row of `mercury-lsp models list --json`. */
interface Model {
  readonly name: string;
  readonly installed: boolean;
  readonly in_use: boolean;
  readonly size_bytes: number;
  readonly licence: string | null;
  readonly speed: { readonly answer_ms: number; readonly estimated: boolean } | null;
}

interface Choice extends QuickPickItem {
  readonly model: Model;
}

/** Let the user choose the model of all editors; resolves to whether it was changed. */
export async function chooseModel(): Promise<boolean> {
  const program = find();
  if (!program) {
    void window.showErrorMessage(`Mercury: ${absence()}.`);
    return false;
  }
  try {
    const models = JSON.parse(await output(program, "list", "--json")) as Model[];
    const chosen = await window.showQuickPick(models.map(choice), { title: "Mercury: the model of all editors" });
    if (!chosen) return false;
    if (!chosen.model.installed) {
      add(program, chosen.model.name);
      return false;
    }
    await output(program, "use", chosen.model.name);
  } catch (error) {
    void window.showErrorMessage(`Mercury: ${reason(error)}`);
    return false;
  }
  if (isModelSet()) {
    const own = String(workspace.getConfiguration("mercury").get("model"));
    void window.showWarningMessage(`Mercury: the setting mercury.model names another model, ${own}, and goes before it.`);
  }
  return true;
}

function choice(model: Model): Choice {
  const facts = [model.licence ?? "licence unknown", `${(model.size_bytes / 1e6).toFixed(0)} MB`];
  if (model.speed) {
    facts.push(`${model.speed.estimated ? "about " : ""}${model.speed.answer_ms.toFixed(0)} ms a suggestion`);
  }
  if (!model.installed) facts.push("to be downloaded");
  return { model, label: `${model.in_use ? "$(check) " : ""}${model.name}`, description: facts.join(", ") };
}

/** In a terminal, because it shows the licence, asks, and takes minutes. */
function add(program: Program, name: string): void {
  const shellArgs = [...program.args, "models", "add", name];
  window.createTerminal({ name: "Mercury", shellPath: program.command, shellArgs, cwd: program.cwd }).show();
}

async function output(program: Program, ...words: string[]): Promise<string> {
  const env = { ...process.env, PYTHONIOENCODING: "utf-8" };
  const options = { cwd: program.cwd, env, encoding: "utf8" } as const;
  return (await promisify(execFile)(program.command, [...program.args, "models", ...words], options)).stdout;
}

/** What the program said, or why it could not be run. */
function reason(error: unknown): string {
  const stderr = (error as { stderr?: string }).stderr?.trim();
  return stderr ? stderr : error instanceof Error ? error.message : String(error);
}
