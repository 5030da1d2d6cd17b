"""The plain command, which starts `fake_daemon.py`: `fake_relay.py LOADS ADDRESS`.

`--hasty`: with little patience; `--watchful`: pings often and waits for the pong; `--tireless`: goes on at once however
often daemons end. Every attempt to resume a session becomes a line in the file LOADS.rejoins.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from mercury_lsp.commands import serve
from mercury_lsp.relay import join, link
from mercury_lsp.relay import relay as relaying
from mercury_lsp.relay.link import Link
from mercury_lsp.transport import standard_streams
from tests.support.patient_link import await_pongs

DAEMON = Path(__file__).with_name("fake_daemon.py")

if __name__ == "__main__":
    standard_streams.complete()
    parser = argparse.ArgumentParser()
    parser.add_argument("loads")
    for option in ("--hasty", "--watchful", "--tireless"):
        parser.add_argument(option, action="store_true")
    serve.add_address_arguments(parser)
    arguments = parser.parse_args()
    if arguments.hasty:
        link.POLL_SECONDS, link.SEND_SECONDS, join.CALL_SECONDS = 0.2, 0.5, 1.0
    if arguments.watchful:
        link.POLL_SECONDS = 0.2
        await_pongs()
    if arguments.tireless:
        relaying.REJOIN_DELAYS_SECONDS = (0.0,) * len(relaying.REJOIN_DELAYS_SECONDS)
    rejoin = relaying.Relay._rejoin

    def noted(self: relaying.Relay, is_hanging: bool) -> Link | None:
        with Path(f"{arguments.loads}.rejoins").open("a") as rejoins:
            rejoins.write("rejoined\n")
        return rejoin(self, is_hanging)

    relaying.Relay._rejoin = noted  # type: ignore[method-assign]
    daemon = (sys.executable, str(DAEMON), arguments.loads, "--idle-exit", "1")
    standard_streams.end_at_once(relaying.Relay(serve.address_of(arguments), daemon).run())
