import { Uri, workspace, type CancellationToken, type TextDocument, type TextEditor } from "vscode";
import { type Server } from "../server";
import { pending, type Answer, type Pending } from "./pending";

/** The server's request for edits; here without fills at the cursor, which are ghost text. */
const METHOD = "textDocument/copilotInlineEdit";

/** The next edit after those in an editor's document, there or in another one; undefined if none is for their text as it is now. */
export async function ask(server: Server, editor: TextEditor, token: CancellationToken): Promise<Pending | undefined> {
  const { document, selection } = editor;
  const { version } = document;
  const answer = await server.ask<{ edits: Answer[] }>(
    METHOD,
    (client) => ({
      textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
      position: client.code2ProtocolConverter.asPosition(selection.active),
      mercury: { fills: false },
    }),
    token,
  );
  const edit = answer?.edits[0];
  if (!edit || token.isCancellationRequested || document.isClosed || document.version !== version) return undefined;
  const edited = documentOf(edit);
  return edited ? pending(edit, edited) : undefined;
}

/** The open document that an edit is in. */
function documentOf({ textDocument }: Answer): TextDocument | undefined {
  return workspace.textDocuments.find((each) => each.uri.toString() === Uri.parse(textDocument.uri).toString());
}

/** The user does not want an edit: the server does not offer it again for the same change. */
export async function reject(server: Server, edit: Pending): Promise<void> {
  if (edit.id) await server.ask("notifyRejected", () => ({ uuids: [edit.id] }));
}

/** The user applied all of an edit. */
export async function accept(server: Server, edit: Pending): Promise<void> {
  if (edit.id) await server.ask("workspace/executeCommand", () => ({ command: "mercury.accepted", arguments: [edit.id] }));
}
