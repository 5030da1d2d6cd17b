/** The settings that name a model, each with the word that stands for `null`. */
export const MODELS: Readonly<Record<string, string>> = { model: "bundled", editModel: "same" };

/** The values of such a setting by where they are set, as VS Code's `inspect` has them. */
export interface ModelValues {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

/** The server looks up a model with this prefix among the installed ones only. */
const INSTALLED = "installed:";

/** Whether the user's settings say which model. */
export function isSet(found: ModelValues | undefined): boolean {
  return [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue].some((value) => value !== undefined);
}

/** The model to use. A repository may bring a folder or a file along, so a workspace's settings only choose by name. */
export function chosen(found: ModelValues | undefined, none = "bundled"): unknown {
  const ofWorkspace = found?.workspaceFolderValue ?? found?.workspaceValue;
  if (ofWorkspace === undefined) return found?.globalValue;
  return typeof ofWorkspace === "string" && ofWorkspace !== none ? INSTALLED + ofWorkspace : null;
}
