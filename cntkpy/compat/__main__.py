"""`python -m cntkpy.compat PROGRAM [ARGS]`: run a program for CNTK 2 as it is."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from cntkpy.compat.alias import install

USAGE = """\
usage: python -m cntkpy.compat PROGRAM [ARGS]
       python -m cntkpy.compat -m MODULE [ARGS]

Run a Python program for CNTK 2 unchanged: `import cntk` gives cntkpy.

examples:
  python -m cntkpy.compat train.py --epochs 3
  python -m cntkpy.compat -m mypackage.train
"""


def main() -> None:
    """Run the program that the command line names, with the rest as its arguments."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if words else sys.stderr)
        raise SystemExit(0 if words else 2)
    is_module = words[0] == "-m"
    if is_module:
        words = words[1:]
    if not words or (words[0].startswith("-") and not Path(words[0]).exists()):
        print(f"error: {words[0] if words else 'a module'} is not a program\n\n{USAGE}", end="", file=sys.stderr)
        raise SystemExit(2)
    program = words[0]
    if not is_module and not Path(program).exists():
        print(f"error: there is no program {program}; the current directory is {Path.cwd()}", file=sys.stderr)
        raise SystemExit(2)
    install()
    sys.argv = words
    if is_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


main()
