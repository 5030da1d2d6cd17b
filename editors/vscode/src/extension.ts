import { commands, env, window, workspace, type ExtensionContext, type TextDocument } from "vscode";
import { DOCTOR, LOG, RETRY, setCommand, type Button } from "./buttons";
import { ASK_AGAIN, showMenu } from "./menu";
import { chooseModel } from "./models";
import { NextEdits } from "./nextedit/nextEdits";
import { ANSWERS, answerTo, type Offer } from "./offer";
import { Report } from "./report";
import { ANSWER_OFFER, FILL, NEXT_EDIT, Server, serves } from "./server";
import { change } from "./settings";
import { sentence, StatusItem, type Status } from "./status";

/** The missing programs already reported: each is reported once, not at every start. */
const REPORTED_MISSING = "toldMissing";

let mercury: Mercury | undefined;

export function activate(context: ExtensionContext): void {
  mercury = new Mercury(context);
  context.subscriptions.push(mercury);
}

export async function deactivate(): Promise<void> {
  await mercury?.server.end();
}

/** The extension in one window. */
class Mercury {
  readonly server: Server;
  private readonly log = window.createOutputChannel("Mercury", { log: true });
  private readonly nextEdits: NextEdits;
  private readonly item = new StatusItem();
  private readonly report = new Report();
  private readonly listening;
  private current: Status = { kind: "Inactive", busy: false, message: "no file is open" };
  private asked = 0;
  /** The larger model that the user has been asked about, until a button was pressed that settles it. */
  private offered: Offer | undefined;

  constructor(private readonly context: ExtensionContext) {
    this.server = new Server(this.log, {
      status: (status) => this.note(status),
      missing: (name) => void this.reportMissing(name),
      configured: () => void this.refresh(),
      offers: (offer) => void this.askAbout(offer),
      // A dialog, because a notification cuts long texts off.
      explains: (reasons) => void window.showInformationMessage("Mercury", { modal: true, detail: reasons.join("\n\n") }),
      found: () => void context.globalState.update(REPORTED_MISSING, undefined),
      keepsEnding: () => void this.offer("Mercury: the server ends whenever it is started.", DOCTOR, LOG, RETRY),
    });
    this.nextEdits = new NextEdits(this.server);
    this.listening = [
      ...this.commands(),
      ...this.nextEditCommands(),
      window.onDidChangeActiveTextEditor(() => void this.refresh()),
      workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("mercury.command")) void this.server.restart();
      }),
    ];
    this.item.show(this.current);
    this.startWithFirstDocument();
  }

  dispose(): void {
    for (const each of [...this.listening, this.nextEdits, this.server, this.item, this.report, this.log]) each.dispose();
  }

  /** The model takes memory, so the server starts with the first document that it serves. */
  private startWithFirstDocument(): void {
    if (workspace.textDocuments.some(serves)) {
      void this.server.restart();
      return;
    }
    const waiting = workspace.onDidOpenTextDocument((document) => {
      if (!serves(document)) return;
      waiting.dispose();
      void this.server.restart();
    });
    this.context.subscriptions.push(waiting);
  }

  private commands() {
    return [
      commands.registerCommand("mercury.menu", () => showMenu(this.current, this.nextEdits, this.offered)),
      commands.registerCommand(ASK_AGAIN, () => this.offered && this.askAbout(this.offered)),
      commands.registerCommand("mercury.toggle", () => this.toggle("enabled")),
      commands.registerCommand("mercury.toggleLanguage", () => this.toggleLanguage()),
      commands.registerCommand("mercury.fillHere", () => this.fillHere()),
      commands.registerCommand("mercury.reveal", () => this.server.subtle.reveal()),
      commands.registerCommand("mercury.chooseModel", () => this.chooseModel()),
      commands.registerCommand("mercury.showStatistics", () => this.report.run("stats")),
      commands.registerCommand("mercury.runDoctor", () => this.report.run("doctor")),
      commands.registerCommand("mercury.showLog", () => this.log.show(true)),
      commands.registerCommand("mercury.restart", () => this.server.restart()),
    ];
  }

  /** Tab runs some of these; where no edit is left by then, it does what Tab does. */
  private nextEditCommands() {
    const { nextEdits } = this;
    return [
      commands.registerCommand("mercury.applyNextEdit", (by?: Key) => this.applyNextEdit(by)),
      commands.registerCommand("mercury.jumpToNextEdit", (by?: Key) => this.jumpToNextEdit(by)),
      commands.registerCommand("mercury.applyNextEditWord", () => nextEdits.apply("word")),
      commands.registerCommand("mercury.applyNextEditLine", () => nextEdits.apply("line")),
      commands.registerCommand("mercury.applyAllNextEdits", () => nextEdits.applyAll()),
      commands.registerCommand("mercury.previewNextEdit", () => nextEdits.compare()),
      commands.registerCommand("mercury.dismissNextEdit", () => nextEdits.dismiss()),
      commands.registerCommand("mercury.toggleNextEdits", () => this.toggle("nextEdits")),
    ];
  }

  private note(status: Status): void {
    const isNews = status.kind !== this.current.kind || status.message !== this.current.message;
    this.show({ ...this.current, ...status });
    // A slow suggestion changes only `busy`.
    if (isNews) void this.refresh();
  }

  /** Request what the server does not send by itself: the model, and whether the current document gets suggestions. */
  private async refresh(): Promise<void> {
    const asked = ++this.asked;
    const status = await this.server.askStatus(window.activeTextEditor?.document);
    if (status && asked === this.asked) this.show(status);
  }

  private show(status: Status): void {
    this.current = status;
    this.item.show(status);
  }

  private async toggle(name: "enabled" | "nextEdits"): Promise<void> {
    await change(name, !workspace.getConfiguration("mercury").get(name));
  }

  private async toggleLanguage(): Promise<void> {
    const language = window.activeTextEditor?.document.languageId;
    if (language === undefined) return;
    const disabled = workspace.getConfiguration("mercury").get<string[]>("disabledLanguages", []);
    const others = disabled.filter((each) => each !== language);
    await change("disabledLanguages", others.length < disabled.length ? others : [...disabled, language]);
  }

  /** A server that starts loads the model that was chosen. */
  private async chooseModel(): Promise<void> {
    if (await chooseModel()) await this.server.restart();
  }

  private async fillHere(): Promise<void> {
    const editor = window.activeTextEditor;
    if (!editor) return;
    await this.run(FILL, editor.document, { position: editor.selection.active });
  }

  /** Apply the edit that is drawn; without one the server looks for one that is not sure enough to be drawn. */
  private async applyNextEdit(by?: Key): Promise<void> {
    if (await this.nextEdits.apply()) return;
    if (by?.key && (await this.nextEdits.goOn())) return;
    const editor = window.activeTextEditor;
    if (by?.key) await otherwise(by);
    else if (editor) await this.run(NEXT_EDIT, editor.document);
  }

  private async jumpToNextEdit(by?: Key): Promise<void> {
    if (!(await this.nextEdits.jump())) await otherwise(by);
  }

  private async run(command: string, document: TextDocument, more: object = {}): Promise<void> {
    if (!serves(document)) {
      void window.showWarningMessage("Mercury works in files, new files and cells of notebooks only.");
      return;
    }
    try {
      const isRunning = await this.server.run(command, (client) => ({
        textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
        ...more,
      }));
      if (!isRunning) void window.showWarningMessage(`Mercury ${sentence(this.current)}`);
    } catch (error) {
      this.log.error(`${command} failed`, error);
      void this.offer(`Mercury could not do that: ${error instanceof Error ? error.message : String(error)}`, LOG);
    }
  }

  /** Ask about a larger model, in a notification that waits; the server shows the download in its status. */
  private async askAbout(offer: Offer): Promise<void> {
    this.offered = offer;
    const chosen = await window.showInformationMessage(offer.question, ...Object.keys(ANSWERS));
    const answer = answerTo(chosen);
    if (answer !== "notNow") this.offered = undefined;
    await this.server.run(ANSWER_OFFER, () => answer);
  }

  private async reportMissing(name: string): Promise<void> {
    // A list, because a window may start before it has the user's settings, and then look for the default program.
    const reported = this.context.globalState.get<string[]>(REPORTED_MISSING, []);
    if (reported.includes(name)) return;
    await this.context.globalState.update(REPORTED_MISSING, [...reported, name]);
    const fix = "Install Mercury LSP (pip install . in a clone of it), or set mercury.command to the program's path.";
    await this.offer(`Mercury: ${name} was not found. ${fix}`, setCommand(env.remoteName), RETRY);
  }

  /** An error with buttons. */
  private async offer(message: string, ...buttons: Button[]): Promise<void> {
    const chosen = await window.showErrorMessage(message, ...buttons);
    if (chosen) await commands.executeCommand(chosen.command, ...chosen.args);
  }
}

/** The argument of a command that a key binding runs. */
interface Key {
  readonly key?: "tab";
}

/** What the key does that ran a command in vain. */
async function otherwise(by?: Key): Promise<void> {
  if (by?.key) await commands.executeCommand(by.key);
}
