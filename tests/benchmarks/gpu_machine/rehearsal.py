"""Runs steps of a GPU's session in processes that have imported torch already, which takes 2.5 s of processor time.

Each line of standard input has the words of a step and a file for its output, in JSON; the answer is its exit code.
"""

import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

ROOT = Path(__file__).resolve().parents[3]
SESSION = ROOT / "benchmarks" / "gpu_session"


def forked(do: Callable[[], Any], output: int) -> int:
    """The exit code of a forked process that does this and writes what it prints to a file."""
    sys.stdout.flush()
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.dup2(output, 1)
    os.dup2(output, 2)
    code: Any = 1
    try:
        code = do()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def interpret(words: Sequence[str]) -> None:
    """What this interpreter does when it is started with these words."""
    os.chdir(ROOT)
    if words[0] == "-m":
        sys.argv = [*words[1:]]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [*words], str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")


class Forking:
    """What the session uses of `subprocess`."""

    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def run(words: Sequence[str], *, stdout: Any, **_: Any) -> "subprocess.CompletedProcess[bytes]":
        assert words[0] == sys.executable, "only this interpreter is rehearsed"
        return subprocess.CompletedProcess(words, forked(lambda: interpret(words[1:]), stdout.fileno()))


def step(words: Sequence[str]) -> Any:
    session = runpy.run_path(str(SESSION / "__main__.py"), run_name="session")
    session["main"].__globals__["subprocess"] = Forking
    return session["main"](words)


if __name__ == "__main__":
    assert torch and transformers
    sys.path += [str(ROOT), str(ROOT / "engine"), str(ROOT / "kernels")]
    for line in sys.stdin:
        words, output = json.loads(line)
        with open(output, "wb") as file:
            print(forked(lambda words=words: step(words), file.fileno()), flush=True)
