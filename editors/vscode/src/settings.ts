import { ConfigurationTarget, workspace } from "vscode";
import { contributes } from "../package.json";

/** The settings that we declare, but for the two that are our own. */
const NAMES = Object.keys(contributes.configuration.properties)
  .map((key) => key.replace(/^mercury\./, ""))
  .filter((name) => name !== "command" && name !== "trace.server");

/** The settings that are the server's; it takes none of them if there is one that it does not know. */
export function serverSettings(): Record<string, unknown> {
  const section = workspace.getConfiguration("mercury");
  return Object.fromEntries(NAMES.map((name) => [name, section.get(name)]));
}

/**
 * Set one of them where it now has its value from: in the workspace if it is set there, else for the user. One of
 * several folders has no say, for VS Code takes settings of the scope "window", as those with a switch are, from none.
 */
export async function change(name: string, value: unknown): Promise<void> {
  const section = workspace.getConfiguration("mercury");
  const inWorkspace = section.inspect(name)?.workspaceValue !== undefined;
  await section.update(name, value, inWorkspace ? ConfigurationTarget.Workspace : ConfigurationTarget.Global);
}
