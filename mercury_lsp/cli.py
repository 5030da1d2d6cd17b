"""The program `mercury-lsp`: runs the language server, or the command that it is given."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mercury_engine.errors import MercuryError

from mercury_lsp import __version__
from mercury_lsp.commands import stdio
from mercury_lsp.daemon.address import default_address
from mercury_lsp.errors import MORE_MEMORY, is_short_of_memory
from mercury_lsp.transport import standard_streams

if TYPE_CHECKING:
    import argparse

COMMANDS = {
    "serve": ("serve", "hold the model for many editors"),
    "complete": ("complete", "print one completion"),
    "try": ("try_", "complete the bundled examples"),
    "watch": ("watch", "show the denoising step by step"),
    "models": ("models", "list, add and remove models, and choose the one that editors use"),
    "stats": ("stats", "show how many suggestions were accepted and kept"),
    "doctor": ("doctor", "check the installation"),
}
"""By name: the module in `commands`, and the help text."""

AT_A_TERMINAL = (
    "mercury-lsp: waiting for an editor on standard input; editors start this themselves. mercury-lsp --help lists the"
    " commands, mercury-lsp try shows an example, Ctrl-C ends it"
)
"""Printed to stderr when a person, not an editor, starts the server."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 for success, 1 without readers, 2 if it cannot do what was asked."""
    closed = standard_streams.complete()
    argv = sys.argv[1:] if argv is None else argv
    # Most editors say nothing or --stdio. A parser takes a megabyte for as long as the editor runs.
    arguments = None if {*argv} <= {"--stdio"} else _parser(argv).parse_args(argv)
    try:
        if arguments is not None and arguments.command is not None:
            code = int(arguments.run(arguments))
            sys.stdout.flush()
            return code
        if closed & {0, 1}:
            print("mercury-lsp: standard input or output is closed, so there is no client to serve", file=sys.stderr)
            return 1
        if sys.stdin.isatty():
            print(AT_A_TERMINAL, file=sys.stderr)
        if arguments is None:
            stdio.run(default_address)
        else:
            from mercury_lsp.commands.serve import address_of

            stdio.run(lambda: address_of(arguments), arguments.in_process)
    except MercuryError as error:
        print(f"mercury-lsp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except (ImportError, MemoryError, OSError, RuntimeError) as error:
        if is_short_of_memory(error):
            print(f"mercury-lsp: {MORE_MEMORY}", file=sys.stderr)
            return 2
        unwritten = error.errno if isinstance(error, OSError) and error.filename is None else None
        if unwritten not in (errno.EPIPE, errno.ENOSPC):
            raise
        standard_streams.drop_output()
        if unwritten == errno.EPIPE:  # as in `mercury-lsp complete ... | head`
            return 1
        reason = os.strerror(errno.ENOSPC)
        print(f"mercury-lsp: the output cannot be written: {reason}; write it to another disk", file=sys.stderr)
        return 2


def _parser(argv: Sequence[str]) -> "argparse.ArgumentParser":
    import argparse
    from importlib import import_module

    from mercury_lsp.commands.serve import add_address_arguments

    parser = argparse.ArgumentParser(
        prog="mercury-lsp",
        description="Code completion by a small language model. Without a command, runs the language server.",
    )
    parser.add_argument("--stdio", action="store_true", help="serve over stdio; this is the default")
    parser.add_argument(
        "--in-process", action="store_true", help="load the model in this process instead of sharing one"
    )
    add_address_arguments(parser)
    parser.add_argument("--version", action="version", version=f"mercury-lsp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module_name, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose.capitalize() + ".")
        if name in argv:  # importing the others would only delay the server
            module = import_module(f"mercury_lsp.commands.{module_name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
