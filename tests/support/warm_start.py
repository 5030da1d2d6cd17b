"""Runs a script as Python would, in a process that has imported the server already: `warm_start.py SCRIPT ...`.

`warm.py` forks that process, at the address in MERCURY_WARM; without one the script starts cold.
Signals are passed on, the exit status is the script's, and whoever kills this process kills that one.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Hand over what the script needs, and wait for its end."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(os.environ["MERCURY_WARM"])
    except (KeyError, OSError):
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    request = json.dumps({"argv": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    socket.send_fds(link, [len(request).to_bytes(4, "big")], [0, 1, 2])
    link.sendall(request)
    os.close(0)
    os.close(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: link.send(bytes([number])))
    status = link.recv(4)
    code = os.waitstatus_to_exitcode(int.from_bytes(status, "big")) if status else 1
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
