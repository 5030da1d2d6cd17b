/** The server's offer of a larger model, in `mercury/offerModel`. */
export interface Offer {
  readonly name: string;
  readonly question: string;
}

/** The buttons below the question, and what they answer. */
export const ANSWERS = { Download: "yes", "Not Now": "notNow", Never: "never" } as const;

/** The answer of the button that was pressed; closing the question means "not now". */
export function answerTo(button: string | undefined): (typeof ANSWERS)[keyof typeof ANSWERS] {
  return Object.entries(ANSWERS).find(([title]) => title === button)?.[1] ?? "notNow";
}

/** The share that has been downloaded, for the status bar; empty if the message has none. */
export function share(message: string): string {
  const found = /\b\d+ %$/.exec(message);
  return found ? ` ${found[0]}` : "";
}
