import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { workspace } from "vscode";

/** How the server is run, by `mercury.command`. */
export interface Program {
  readonly command: string;
  readonly args: string[];
  readonly cwd: string;
}

/** The value of `mercury.command`; a string, which the settings mark as wrong, is a program without arguments. */
export function wanted(): readonly string[] {
  const value = workspace.getConfiguration("mercury").get<string | string[]>("command", []);
  return typeof value === "string" ? [value] : value;
}

/** The message for a missing program: what is wrong and how to fix it. */
export function absence(): string {
  return `${wanted()[0] ?? "mercury.command"} was not found; install Mercury LSP or set mercury.command to its path`;
}

/** The configured program; undefined if there is no such file. */
export function find(): Program | undefined {
  const [name, ...args] = wanted();
  const cwd = folder();
  const command = name && candidates(name, cwd).find(isFile);
  return command ? { command, args, cwd } : undefined;
}

/** Its working folder. Python may import from it, so it is never a folder that the user does not trust. */
function folder(): string {
  const first = workspace.workspaceFolders?.[0]?.uri;
  return workspace.isTrusted && first?.scheme === "file" && existsSync(first.fsPath) ? first.fsPath : homedir();
}

function candidates(name: string, cwd: string): string[] {
  const endings = process.platform === "win32" ? ["", ".exe"] : [""];
  const places = /[\\/]/.test(name)
    ? [resolve(cwd, name.replace(/^~(?=[\\/])/, homedir()))]
    : (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute).map((place) => join(place, name));
  return places.flatMap((place) => endings.map((ending) => place + ending));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
