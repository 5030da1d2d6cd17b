/** A diagnostic as VS Code has it; what Mercury doesn't forward is left out. */
export interface Diagnostic {
  readonly range: Range;
  readonly severity: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

interface Position {
  readonly line: number;
  readonly character: number;
}

/** VS Code's severity of errors; those of LSP are greater by one. */
const ERROR = 0;

/** Most errors of a document that are forwarded. */
const MOST = 100;

/** What the server is told: where errors are, without their messages. */
export function forwarded(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const found = diagnostics.filter(({ severity }) => severity === ERROR);
  return found.slice(0, MOST).map(({ range, severity }) => ({ range: plain(range), severity: severity + 1 }));
}

export function plain({ start, end }: Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
