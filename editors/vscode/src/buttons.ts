/** A button below a message, and the command that it runs. */
export interface Button {
  readonly title: string;
  readonly command: string;
  readonly args: readonly unknown[];
}

export const DOCTOR: Button = { title: "Run Doctor", command: "mercury.runDoctor", args: [] };
export const LOG: Button = { title: "Show Log", command: "mercury.showLog", args: [] };
export const RETRY: Button = { title: "Try Again", command: "mercury.restart", args: [] };

/** Opens the settings at `mercury.command`. It belongs to a machine: in a remote window the user's settings lack it. */
export function setCommand(remoteName: string | undefined): Button {
  const command = remoteName === undefined ? "workbench.action.openSettings" : "workbench.action.openRemoteSettings";
  return { title: "Open Settings", command, args: [{ query: "mercury.command" }] };
}
