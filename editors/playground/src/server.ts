// The server that this page came from.

/** One token of the canvas after a step. */
export interface Slot {
  readonly text: string;
  readonly state: "mask" | "draft" | "committed" | "end";
  readonly confidence: number;
}

export type Step = readonly Slot[];

export interface Answer {
  readonly text: string;
  readonly confidence: number;
  readonly steps: number;
  /** Why an editor would not show the text unasked; null if it would. */
  readonly silence: string | null;
}

export interface Gap {
  readonly prompt: string;
  readonly suffix: string;
  readonly path: string;
  readonly effort: string;
  readonly several_lines: boolean;
}

type Line = { readonly step: Step } | { readonly answer: Answer } | { readonly error: { readonly message: string } };

const TOKEN = "mercury-token";

/** The server wants a token, or another one. */
export class Locked extends Error {}

/** Keep the token for as long as this tab is open. */
export function unlock(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

/** The name of the model that answers. */
export async function modelName(): Promise<string> {
  const about = (await (await request("mercury/v1/answer")).json()) as { name: string; device: string };
  return `${about.name}, ${about.device}`;
}

/** Fill a gap; `onStep` gets the canvas after each step. Ends when `signal` is aborted. */
export async function fill(gap: Gap, onStep: (step: Step) => void, signal: AbortSignal): Promise<Answer> {
  const reply = await request("mercury/v1/steps", { method: "POST", body: JSON.stringify(gap), signal });
  for await (const line of lines(reply)) {
    const said = JSON.parse(line) as Line;
    if ("answer" in said) return said.answer;
    if ("error" in said) throw new Error(said.error.message);
    onStep(said.step);
  }
  throw new Error("the server ended without an answer");
}

async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { "Content-Type": "application/json", ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
  const reply = await fetch(path, { ...options, headers });
  if (reply.status === 401) throw new Locked();
  if (!reply.ok) {
    const body = (await reply.json()) as { error: { message: string } };
    throw new Error(body.error.message);
  }
  return reply;
}

async function* lines(reply: Response): AsyncGenerator<string> {
  if (reply.body === null) return;
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    yield* parts.filter((part) => part.trim() !== "");
  }
  if (rest.trim() !== "") yield rest;
}
