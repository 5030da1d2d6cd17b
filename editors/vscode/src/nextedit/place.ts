import { type Text } from "./pending";

/** The server's answer to a request for the next place: a line of a version of an open document. */
export interface Place {
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly position: { readonly line: number; readonly character: number };
}

/** Whether a document is the one that a place is in, and still has the text that it was found in. */
export function isIn({ textDocument, position }: Place, document: Text): boolean {
  const { uri, version, lineCount } = document;
  return textDocument.uri === uri.toString() && textDocument.version === version && position.line < lineCount;
}
