import { spawn } from "node:child_process";
import { ProgressLocation, window, type Disposable } from "vscode";
import { absence, find } from "./program";

/** What `mercury-lsp stats` or `mercury-lsp doctor` prints, in an output channel; a new run ends the last. */
export class Report implements Disposable {
  private readonly channel = window.createOutputChannel("Mercury Report");
  private last = new AbortController();

  async run(command: "stats" | "doctor"): Promise<void> {
    this.last.abort();
    const { signal } = (this.last = new AbortController());
    const program = find();
    this.channel.clear();
    this.channel.show(true);
    if (!program) {
      this.channel.appendLine(`${absence()}.`);
      return;
    }
    await window.withProgress({ location: ProgressLocation.Window, title: `mercury-lsp ${command}` }, () => {
      const env = { ...process.env, PYTHONIOENCODING: "utf-8" };
      const child = spawn(program.command, [...program.args, command], { cwd: program.cwd, env, signal });
      const print = (text: string) => {
        if (!signal.aborted) this.channel.append(text);
      };
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", print);
      return new Promise<void>((resolve) => {
        child.on("error", (error) => print(`${error.message}\n`)).on("close", () => resolve());
        child.stdin.end();
      });
    });
  }

  dispose(): void {
    this.last.abort();
    this.channel.dispose();
  }
}
