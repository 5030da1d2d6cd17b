import {
  CodeActionTriggerKind,
  EventEmitter,
  languages,
  window,
  type CancellationToken,
  type CodeAction,
  type Command,
  type Disposable,
  type InlineCompletionItem,
  type LogOutputChannel,
  type TextDocument,
} from "vscode";
import {
  CloseAction,
  DidChangeConfigurationNotification,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  LSPErrorCodes,
  ResponseError,
  type LanguageClientOptions,
  type ServerOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import { type Offer } from "./offer";
import { absence, find, wanted } from "./program";
import { environment, serverSettings } from "./settings";
import { problem, STARTING, type Status } from "./status";
import { Subtle } from "./subtle";

/** What the server declares beyond LSP. */
interface OwnCapabilities {
  readonly mercury?: { readonly diagnostics?: boolean; readonly highlights?: boolean };
}

/** The documents that are synchronised with the server. */
export const DOCUMENTS = [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-notebook-cell" }];

/** The server's command that says why nothing is shown in a document. */
const EXPLAIN = "mercury.explain";

/** The server's commands behind its code actions. */
export const FILL = "mercury.fill";
export const NEXT_EDIT = "mercury.nextEdit";

/** The server's command that takes the user's answer to its offer. */
export const ANSWER_OFFER = "mercury.answerOffer";

const SHORT_LIFE_MS = 60_000;
const SHORT_LIVES_BEFORE_NOTICE = 5;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;

/** The parameters of what is asked about a document; none if it is not the server's. */
function parametersOf(document: TextDocument | undefined): object[] {
  return document && serves(document) ? [{ textDocument: { uri: document.uri.toString() } }] : [];
}

/** Receives the server's events. */
export interface Listener {
  /** The status changed, as reported by the server or by the extension. */
  status(status: Status): void;
  /** The program was not found. */
  missing(name: string): void;
  /** The server offers a larger model. */
  offers(offer: Offer): void;
  /** Why nothing is shown in the active document, as the user asked. */
  explains(reasons: readonly string[]): void;
  /** The program was found. */
  found(): void;
  /** The server was sent its settings. */
  configured(): void;
  /** The server exited so often that it will be restarted rarely. */
  keepsEnding(): void;
}

/** At most one running server. One that exits is restarted, after a pause that doubles with each short life. */
export class Server implements Disposable {
  private readonly started = new EventEmitter<void>();
  /** The server takes messages from now on. */
  readonly onDidStart = this.started.event;
  /** Marks texts, with `mercury.display` "subtle". */
  readonly subtle = new Subtle((item) => void this.reportShown(item));
  private client: LanguageClient | undefined;
  private startedAt = 0;
  private shortLives = 0;
  private again: NodeJS.Timeout | undefined;
  private isOver = false;

  constructor(
    private readonly log: LogOutputChannel,
    private readonly listener: Listener,
  ) {}

  /** Start the server; stop the running one first. */
  async restart(): Promise<void> {
    this.shortLives = 0;
    this.listener.status(STARTING); // the old server takes a while to stop, and is not ready meanwhile
    await this.stop();
    await this.start();
  }

  /** Stop it for good, even if a restart is under way. */
  async end(): Promise<void> {
    this.isOver = true;
    await this.stop();
  }

  private async stop(): Promise<void> {
    clearTimeout(this.again);
    const client = this.client;
    this.client = undefined;
    // A client that has not started yet cannot be stopped; its process is killed.
    await client?.stop().catch((error: unknown) => this.log.warn("the server did not stop by itself", error));
  }

  /** The server's answer to `mercury/status`; undefined without one. */
  async askStatus(document?: TextDocument): Promise<Status | undefined> {
    const [about] = parametersOf(document);
    return this.ask<Status>("mercury/status", () => about ?? {});
  }

  /** The answer to a request; undefined without one. */
  async ask<T>(
    method: string,
    params: (client: LanguageClient) => object,
    token?: CancellationToken,
  ): Promise<T | undefined> {
    if (!this.client?.isRunning()) return undefined;
    try {
      const own = params(this.client);
      // A token that is undefined would be sent as a second parameter.
      return await (token ? this.client.sendRequest<T>(method, own, token) : this.client.sendRequest<T>(method, own));
    } catch (error) {
      if (!token?.isCancellationRequested) this.log.debug(`there was no answer to ${method}`, error);
      return undefined;
    }
  }

  /** Whether it takes messages. */
  get isRunning(): boolean {
    return this.client?.isRunning() === true;
  }

  /** Whether the server takes the diagnostics of others. */
  get takesDiagnostics(): boolean {
    return this.own?.mercury?.diagnostics === true;
  }

  /** Whether the server takes where others see the name at the cursor. */
  get takesHighlights(): boolean {
    return this.own?.mercury?.highlights === true;
  }

  private get own(): OwnCapabilities | undefined {
    const own: unknown = this.client?.initializeResult?.capabilities.experimental;
    return own as OwnCapabilities | undefined;
  }

  /** Send a notification, if a server is running. */
  async notify(method: string, params: (client: LanguageClient) => object): Promise<void> {
    if (!this.client?.isRunning()) return;
    await this.client
      .sendNotification(method, params(this.client))
      .catch((error: unknown) => this.log.debug(`${method} was not sent`, error));
  }

  /** Run one of the server's commands; false if no server is running. Throws the server's error. */
  async run(command: string, argument: (client: LanguageClient) => unknown): Promise<boolean> {
    if (!this.client?.isRunning()) return false;
    const params = { command, arguments: [argument(this.client)] };
    await this.client.sendRequest(ExecuteCommandRequest.type, params).catch(unlessCancelled);
    return true;
  }

  /** What nobody saw does not count as refused, so what is shown after all is reported. */
  private async reportShown({ command }: InlineCompletionItem): Promise<void> {
    await this.notify("textDocument/didShowCompletion", () => ({ item: { command } }));
  }

  dispose(): void {
    this.subtle.dispose();
    this.started.dispose();
    void this.end();
  }

  private async start(): Promise<void> {
    if (this.client || this.isOver) return; // another restart, or the end, came first
    const program = find();
    if (!program) {
      const name = wanted()[0] ?? "mercury.command";
      this.listener.status(problem(absence()));
      this.listener.missing(name);
      return;
    }
    this.listener.found();
    const { command, args, cwd } = program;
    const run = { command, args, options: { cwd, env: environment() } };
    const client = new QuietClient(run, this.options(() => this.ended(client)));
    client.onNotification("didChangeStatus", (status: Status) => {
      if (client === this.client) this.listener.status(status);
    });
    client.onNotification("mercury/offerModel", (offer: Offer) => {
      if (client === this.client) this.listener.offers(offer);
    });
    this.client = client;
    this.startedAt = Date.now();
    this.listener.status(STARTING);
    await client.start().then(
      () => this.started.fire(),
      () => this.ended(client),
    );
  }

  private options(ended: () => void): LanguageClientOptions {
    return {
      documentSelector: DOCUMENTS,
      outputChannel: this.log,
      initializationOptions: () => ({ mercury: serverSettings() }),
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          ended();
          return { action: CloseAction.DoNotRestart, handled: true, message: "The server has ended." };
        },
      },
      middleware: {
        // A fill is possible everywhere, so a light bulb for it would be everywhere and mean nothing.
        provideCodeActions: async (document, range, context, token, next) => {
          const actions = await next(document, range, context, token);
          const isAsked = context.triggerKind === CodeActionTriggerKind.Invoke;
          return isAsked ? actions : actions?.filter((action) => !fillsHere(action));
        },
        provideInlineCompletionItems: (document, position, context, token, next) =>
          this.subtle.answer(document, position, context, token, () => next(document, position, context, token)),
        executeCommand: async (command, args: unknown[], next): Promise<unknown> => {
          if (command !== EXPLAIN) return next(command, args);
          const [about] = parametersOf(window.activeTextEditor?.document);
          const reasons: unknown = await next(command, [{ ...about, quiet: true }]);
          if (Array.isArray(reasons)) this.listener.explains(reasons.map(String));
          return reasons;
        },
        workspace: {
          configuration: (params) => params.items.map(({ section }) => (section === "mercury" ? serverSettings() : null)),
          didChangeConfiguration: async () => this.configure(),
        },
      },
    };
  }

  private async configure(): Promise<void> {
    await this.client?.sendNotification(DidChangeConfigurationNotification.type, {
      settings: { mercury: serverSettings() },
    });
    this.listener.configured();
  }

  private ended(client: LanguageClient): void {
    if (client !== this.client) return;
    this.client = undefined;
    this.shortLives = Date.now() - this.startedAt > SHORT_LIFE_MS ? 1 : this.shortLives + 1;
    if (this.shortLives < SHORT_LIVES_BEFORE_NOTICE) {
      this.listener.status(problem("the server has ended, and is started again"));
    } else {
      this.listener.status(problem("the server ends whenever it is started; the log or the doctor may say why"));
      if (this.shortLives === SHORT_LIVES_BEFORE_NOTICE) this.listener.keepsEnding();
    }
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.shortLives - 1));
    this.again = setTimeout(() => void this.start(), pause);
  }
}

/** Whether the server handles a document. */
export function serves(document: TextDocument): boolean {
  return languages.match(DOCUMENTS, document) > 0;
}

function fillsHere(action: Command | CodeAction): boolean {
  const command = typeof action.command === "string" ? action.command : action.command?.command;
  return command === FILL;
}

/** The user knows about a command that they cancelled themselves. */
function unlessCancelled(error: unknown): void {
  if (!(error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled)) throw error;
}

/** Its errors go to the log only: the server, or the extension, shows those that matter to the user. */
class QuietClient extends LanguageClient {
  constructor(server: ServerOptions, options: LanguageClientOptions) {
    super("mercury", "Mercury", server, options);
    this.registerFeature(OWN_CAPABILITIES);
  }

  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Declares that the server may send `didChangeStatus` and `mercury/offerModel`, and next edits of other documents than the one asked about, and that texts may be marked only. */
const OWN_CAPABILITIES: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { mercury: { status: true, editsElsewhere: true, offers: true, subtle: true } };
  },
  initialize: () => {},
  getState: () => ({ kind: "static" }),
  clear: () => {},
};
