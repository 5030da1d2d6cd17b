"""Many users at once: each types into its own connection and never waits for an answer before the next key."""

import asyncio
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from on_keys.editor import position
from on_keys.script import Script

from mercury_lsp.daemon.address import Address
from mercury_lsp.relay.join import connect
from mercury_lsp.transport.framing import MessageDecoder, framed


@dataclass
class Typist:
    """One connection, its keys, and the latencies of its answers."""

    script: Script
    uri: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    sent: dict[Any, float] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    """Milliseconds."""
    late: list[float] = field(default_factory=list)
    """Milliseconds by which keys were late."""
    superseded: int = 0
    frames: list[bytes] = field(default_factory=list)

    async def begin(self) -> None:
        """Open the document and prepare the messages."""
        self.frames = list(self.made())
        self.listening = asyncio.ensure_future(self.listen())
        self.send("initialize", {"capabilities": {}, "processId": None, "rootUri": None}, "initialize")
        while "initialize" in self.sent:
            await asyncio.sleep(0.01)
        self.send("initialized", {})
        document = {"uri": self.uri, "languageId": "python", "version": 0, "text": self.script.text}
        self.send("textDocument/didOpen", {"textDocument": document})

    async def type(self, seconds: float, pace: float, rng: random.Random, sleeping: Executor) -> None:
        """Type for `seconds`, one key every `pace` seconds on average.

        Threads sleep to the tenth of a millisecond, the event loop to whole ones: it would bring together keys that
        come one after another.
        """
        due = time.perf_counter() + rng.random() * pace
        end = time.perf_counter() + seconds
        loop = asyncio.get_running_loop()
        for number, frame in enumerate(self.frames):
            await loop.run_in_executor(sleeping, time.sleep, max(0.0, due - time.perf_counter()))
            if time.perf_counter() > end:
                break
            self.sent[number] = time.perf_counter()
            self.late.append(1e3 * (self.sent[number] - due))
            self.writer.write(frame)
            due += pace * rng.uniform(0.5, 1.5)
        await asyncio.sleep(0.5)

    def made(self) -> Iterator[bytes]:
        """The bytes of every key, prepared in advance: a change and a request."""
        before = self.script.text
        for number, (key, text) in enumerate(self.script.states()):
            span = {"start": position(before, key.start), "end": position(before, key.end)}
            document = {"uri": self.uri, "version": number + 1}
            change = {"textDocument": document, "contentChanges": [{"range": span, "text": key.text}]}
            asked = {
                "textDocument": {"uri": self.uri},
                "position": position(text, key.cursor),
                "context": {"triggerKind": 2},
            }
            yield framed({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": change}) + framed(
                {"jsonrpc": "2.0", "id": number, "method": "textDocument/inlineCompletion", "params": asked}
            )
            before = text

    def send(self, method: str, params: Any, msg_id: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if msg_id is not None:
            self.sent[msg_id] = time.perf_counter()
            message["id"] = msg_id
        self.writer.write(framed(message))

    async def listen(self) -> None:
        """Record the latency of every answer."""
        decoder = MessageDecoder()
        while data := await self.reader.read(65536):
            now = time.perf_counter()
            for message in decoder.feed(data):
                if "method" in message or (begun := self.sent.pop(message["id"], None)) is None:
                    continue
                if message["id"] != "initialize":
                    self.superseded += "error" in message
                    self.took.append(1e3 * (now - begun))


@asynccontextmanager
async def connected(address: Address, scripts: Sequence[Script], through_relays: bool) -> Any:
    """A typist for each script, ready to type."""
    processes = []
    typists = []
    for number, script in enumerate(scripts):
        if through_relays:
            command = [sys.executable, "-m", "mercury_lsp", *address.arguments]
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
            processes.append(process)
            streams = process.stdout, process.stdin
        else:
            connection = connect(address)
            assert connection is not None, "there is no daemon"
            connection.setblocking(False)
            streams = await asyncio.open_unix_connection(sock=connection)
        typists.append(Typist(script, f"file:///work/{number}.py", *streams))
    await asyncio.gather(*(each.begin() for each in typists))
    try:
        yield typists, [process.pid for process in processes]
    finally:
        for each in typists:
            each.writer.close()
        for process in processes:
            await process.wait()
