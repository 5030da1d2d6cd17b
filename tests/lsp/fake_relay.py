"""The real relay, which starts `fake_daemon.py`: `fake_relay.py LOADS ADDRESS`; `--hasty`: with little patience."""

import argparse
import os
import sys
from pathlib import Path

from mercury_lsp.commands import serve
from mercury_lsp.daemon import handshake
from mercury_lsp.relay import link
from mercury_lsp.relay.join import join
from mercury_lsp.relay.link import READ_BYTES, Link
from mercury_lsp.relay.relay import Relay

DAEMON = Path(__file__).with_name("fake_daemon.py")

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("loads")
    parser.add_argument("--hasty", action="store_true")
    serve.add_address_arguments(parser)
    arguments = parser.parse_args()
    if arguments.hasty:
        link.LOOK_SECONDS, link.SEND_SECONDS, handshake.SECONDS = 0.2, 0.5, 1.0
    address = serve.address_of(arguments)
    relay = Relay(lambda: Link(join(address, (sys.executable, str(DAEMON), arguments.loads, "--idle-exit", "1"))))
    serve.end_at_once(relay.run(lambda: os.read(0, READ_BYTES), sys.stdout.buffer))
