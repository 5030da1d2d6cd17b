import { ConfigurationTarget, workspace } from "vscode";

/** The settings that are the server's; it checks them, and names what it does not know. */
export function serverSettings(): Record<string, unknown> {
  const { command, trace, ...rest } = workspace.getConfiguration().get<Record<string, unknown>>("mercury", {});
  return rest;
}

/** Set one of them where it now has its value from: in the workspace if it is set there, else for the user. */
export async function change(name: string, value: unknown): Promise<void> {
  const section = workspace.getConfiguration("mercury");
  const inWorkspace = section.inspect(name)?.workspaceValue !== undefined;
  await section.update(name, value, inWorkspace ? ConfigurationTarget.Workspace : ConfigurationTarget.Global);
}
