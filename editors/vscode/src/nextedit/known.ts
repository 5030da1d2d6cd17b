import { plain, type Range } from "./forwarded";

/** A highlight as VS Code has it. */
export interface Highlight {
  readonly range: Range;
  readonly kind?: number | undefined;
}

/** VS Code's kind of a place where the same text stands; those of LSP are greater by one. */
const TEXT = 0;

/** What the server is told; nothing of highlights by the text alone, as VS Code itself makes them for want of others. */
export function known(highlights: readonly Highlight[]): Highlight[] {
  const isKnown = highlights.some(({ kind }) => kind !== undefined && kind !== TEXT);
  return isKnown ? highlights.map(({ range, kind }) => ({ range: plain(range), kind: (kind ?? TEXT) + 1 })) : [];
}
