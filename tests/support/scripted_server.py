"""A language server that answers `textDocument/inlineCompletion` from a script, for exact control of races.

    python scripted_server.py RULES.json LOG.jsonl

RULES.json is read anew at every request: a list of rules, of which the first that fits answers.

    before         the text of the line up to the position ends with this
    trigger        the trigger kind, if given
    result         the result, sent as it is; it may be null
    error          an error code, sent in place of a result
    gate           the reply waits until this file exists
    parts          values sent under the request's partialResultToken, before the reply and its gate
    ignore_cancel  the reply is sent although the request was cancelled

A request that no rule fits is answered by an empty list. LOG.jsonl gets every message from the client, and
`{"answered": id}` after every reply. The notification `$/test/say` makes the server send its parameters.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

REQUEST_CANCELLED = -32800
METHOD_NOT_FOUND = -32601
GATE_POLL_S = 0.01

Message = dict[str, Any]


def read_message(stream: BinaryIO) -> Message | None:
    """The next message, or None at the end of the stream."""
    length = 0
    while (header := stream.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(stream.read(length)) if length else None


def text_before(text: str, line: int, character: int) -> str:
    """The line's text in front of `character`, which counts UTF-16 units."""
    units = text.split("\n")[line].encode("utf-16-le")
    return units[: 2 * character].decode("utf-16-le", "replace")


class ScriptedServer:
    def __init__(self, rules: Path, log: Path) -> None:
        self.rules = rules
        self.log = log
        self.texts: dict[str, str] = {}
        self.cancelled: set[int | str] = set()
        self.writing = threading.Lock()

    def serve(self) -> None:
        while (message := read_message(sys.stdin.buffer)) is not None:
            self.note(message)
            if message.get("method") == "exit":
                return
            self.handle(message)

    def handle(self, message: Message) -> None:
        params = message.get("params") or {}
        match message.get("method"):
            case "textDocument/didOpen":
                self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
            case "textDocument/didChange":
                self.texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]
            case "$/cancelRequest":
                self.cancelled.add(params["id"])
            case "textDocument/inlineCompletion":
                rule = self.rule_for(params)
                token = params.get("partialResultToken")
                threading.Thread(target=self.answer, args=(message["id"], rule, token), daemon=True).start()
            case "initialize":
                self.send({"id": message["id"], "result": {"capabilities": CAPABILITIES}})
            case "mercury/status":
                told = self.rules.with_name("status.json")
                more = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
                self.send({"id": message["id"], "result": STATUS | more})
            case "$/test/say":
                self.send(params)
            case "shutdown" | "workspace/executeCommand":
                self.send({"id": message["id"], "result": None})
            case _ if "id" in message and "method" in message:
                self.send({"id": message["id"], "error": {"code": METHOD_NOT_FOUND, "message": "not scripted"}})

    def rule_for(self, params: Message) -> Message:
        position = params["position"]
        before = text_before(self.texts[params["textDocument"]["uri"]], position["line"], position["character"])
        for rule in json.loads(self.rules.read_text(encoding="utf-8")):
            trigger = rule.get("trigger", params["context"]["triggerKind"])
            if before.endswith(rule["before"]) and trigger == params["context"]["triggerKind"]:
                return rule
        return {"result": []}

    def answer(self, request: int | str, rule: Message, token: int | str | None) -> None:
        for value in rule.get("parts", ()) if token is not None else ():
            self.send({"method": "$/progress", "params": {"token": token, "value": value}})
        while "gate" in rule and not Path(rule["gate"]).exists():
            if request in self.cancelled and not rule.get("ignore_cancel"):
                break
            time.sleep(GATE_POLL_S)
        if request in self.cancelled and not rule.get("ignore_cancel"):
            self.send({"id": request, "error": {"code": REQUEST_CANCELLED, "message": "cancelled"}})
        elif "error" in rule:
            self.send({"id": request, "error": {"code": rule["error"], "message": "scripted"}})
        else:
            self.send({"id": request, "result": rule["result"]})

    def send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.writing:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            sys.stdout.buffer.flush()
            self.note({"answered": message["id"]} if "id" in message else {"said": message["method"]})

    def note(self, entry: Message) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")


STATUS = {
    "kind": "Normal",
    "busy": False,
    "message": "",
    "version": "1.2.3",
    "model": None,
    "engine": {"name": "scripted", "device": "cpu", "backend": "paper"},
}

CAPABILITIES = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 1},
    "inlineCompletionProvider": True,
    "executeCommandProvider": {"commands": ["scripted.accepted"]},
    "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
}


if __name__ == "__main__":
    ScriptedServer(Path(sys.argv[1]), Path(sys.argv[2])).serve()
