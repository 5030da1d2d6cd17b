import { ConfigurationTarget, workspace } from "vscode";
import { contributes } from "../package.json";
import { chosen, isSet, MODELS, type ModelValues } from "./modelSetting";

/** The extension's own settings. */
const OWN: readonly string[] = ["command", "nextEditKey", "trace.server"];

/** The declared settings that are the server's. */
const NAMES = Object.keys(contributes.configuration.properties)
  .map((key) => key.replace(/^mercury\./, ""))
  .filter((name) => !OWN.includes(name));

/** The server's settings. The server rejects all of them if it does not know one. */
export function serverSettings(): Record<string, unknown> {
  const section = workspace.getConfiguration("mercury");
  // Without a model the server takes the one that `mercury-lsp models use` chose; null would be the bundled one, or for
  // edits the same one.
  // Likewise the engine is the environment's.
  const names = NAMES.filter((name) => !(name in MODELS || name === "engine") || isSet(modelValues(name)));
  return Object.fromEntries(
    names.map((name) => [name, name in MODELS ? chosen(modelValues(name), MODELS[name]) : section.get(name)]),
  );
}

/** The environment of the server, which asks no remote engines but those named there; no repository sets it. */
export function environment(): NodeJS.ProcessEnv {
  const url = modelValues("engine")?.globalValue;
  const edits = modelValues("editModel")?.globalValue;
  return {
    ...process.env,
    ...(typeof url === "string" ? named("MERCURY_ENGINE", url) : {}),
    ...(typeof edits === "string" && /^https?:/.test(edits) ? named("MERCURY_EDIT_ENGINE", edits) : {}),
  };
}

/** A variable with another URL before those that it has. */
function named(variable: string, url: string): NodeJS.ProcessEnv {
  return { [variable]: `${url} ${process.env[variable] ?? ""}` };
}

/** Whether the user wants next edits. */
export function areNextEditsWanted(): boolean {
  const section = workspace.getConfiguration("mercury");
  return section.get("enabled") === true && section.get("nextEdits") === true;
}

/** Whether the user's settings say which model. */
export function isModelSet(): boolean {
  return isSet(modelValues("model"));
}

function modelValues(name: string): ModelValues | undefined {
  return workspace.getConfiguration("mercury").inspect(name);
}

/**
 * Change a setting where it is set now: in the workspace if it is set there, else for the user. Folders are ignored:
 * the settings with a switch have the scope "window", which VS Code never reads from a folder.
 */
export async function change(name: string, value: unknown): Promise<void> {
  const section = workspace.getConfiguration("mercury");
  const inWorkspace = section.inspect(name)?.workspaceValue !== undefined;
  await section.update(name, value, inWorkspace ? ConfigurationTarget.Workspace : ConfigurationTarget.Global);
}
