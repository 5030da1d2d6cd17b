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

/** VS Code's severities of errors and warnings; those of LSP are greater by one. */
const [ERROR, WARNING] = [0, 1];

/** Most diagnostics of a document that are forwarded. */
const MOST = 100;

/** What the server is told: where errors and warnings are, errors first, without their messages. */
export function forwarded(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const found = [ERROR, WARNING].flatMap((severity) => diagnostics.filter((each) => each.severity === severity));
  return found.slice(0, MOST).map(({ range, severity }) => ({ range: plain(range), severity: severity + 1 }));
}

export function hasErrors(found: readonly Diagnostic[]): boolean {
  return found.some(({ severity }) => severity === ERROR + 1);
}

export function plain({ start, end }: Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
