import { spawn } from "node:child_process";
import { ProgressLocation, window, type Disposable } from "vscode";
import { find } from "./program";

/** What `mercury-lsp stats` and `mercury-lsp doctor` print, in an output channel of their own. */
export class Report implements Disposable {
  private readonly channel = window.createOutputChannel("Mercury Report");

  async run(command: "stats" | "doctor"): Promise<void> {
    const program = find();
    this.channel.clear();
    this.channel.show(true);
    if (!program) {
      this.channel.appendLine("mercury-lsp was not found; install Mercury LSP or set mercury.command to its path.");
      return;
    }
    await window.withProgress({ location: ProgressLocation.Window, title: `mercury-lsp ${command}` }, () => {
      const environment = { ...process.env, PYTHONIOENCODING: "utf-8" };
      const child = spawn(program.command, [...program.args, command], { cwd: program.cwd, env: environment });
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => this.channel.append(text));
      }
      return new Promise<void>((resolve) => {
        child.on("error", (error) => this.channel.appendLine(error.message)).on("close", () => resolve());
        child.stdin.end();
      });
    });
  }

  dispose(): void {
    this.channel.dispose();
  }
}
