import { commands } from "vscode";

/** The keys that the `when` clauses of key bindings read. */
interface Contexts {
  /** A next edit is drawn in the active editor. */
  nextEditVisible: boolean;
  /** It is part of a renaming that has further places. */
  nextEditIsRenaming: boolean;
  /** The cursor is on its lines. */
  nextEditAtCursor: boolean;
  /** The cursor is where the jump to it, or its last part, put it. */
  nextEditEntered: boolean;
  /** What Tab does. */
  nextEditTab: "jump" | "apply" | "indent";
}

export const NONE: Contexts = {
  nextEditVisible: false,
  nextEditIsRenaming: false,
  nextEditAtCursor: false,
  nextEditEntered: false,
  nextEditTab: "indent",
};

let current: Contexts = NONE;

export function setContexts(contexts: Contexts): void {
  for (const name of Object.keys(NONE) as (keyof Contexts)[]) {
    if (contexts[name] !== current[name]) void commands.executeCommand("setContext", `mercury.${name}`, contexts[name]);
  }
  current = contexts;
}
