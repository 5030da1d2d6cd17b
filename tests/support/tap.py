"""Runs a language server and keeps what is said: `tap.py LOG.jsonl PROGRAM ARGUMENTS...`

LOG.jsonl gets every message, as `{"from": "editor"}` or `{"from": "server"}` with the message under "said".
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from scripted_server import read_message


def pump(source: BinaryIO, target: BinaryIO, name: str, log: Path, writing: threading.Lock) -> None:
    """Until the source has no more."""
    while (message := read_message(source)) is not None:
        with writing, log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"from": name, "said": message}) + "\n")
        body = json.dumps(message).encode()
        target.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        target.flush()
    target.close()


if __name__ == "__main__":
    log, command = Path(sys.argv[1]), sys.argv[2:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writing = threading.Lock()
    inward = (sys.stdin.buffer, server.stdin, "editor", log, writing)
    threading.Thread(target=pump, args=inward, daemon=True).start()
    pump(server.stdout, sys.stdout.buffer, "server", log, writing)
    sys.exit(server.wait())
