"""The entry point: shows the help at once, without loading the program.

Importing click takes three times as long as starting Python; it happens only when a command is to run.
"""

from __future__ import annotations

import os
import sys

from torchmark.cli.startup import discard, flush, is_closed, open_closed_streams, overview
from torchmark.errors import ExitCode

# A shell that completes a command line sets this, and gives no arguments.
COMPLETION_VARIABLE = "_TORCHMARK_COMPLETE"


def main(arguments: list[str] | None = None) -> int:
    try:
        open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            # A terminal that lacks a character shows a question mark, and everything else.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        code = _run(sys.argv[1:] if arguments is None else arguments)
        if code:
            # What went wrong has been told, and decides the exit code.
            flush(sys.stdout)
        else:
            sys.stdout.flush()
    except KeyboardInterrupt:
        # It came while modules were imported: commands handle it themselves. So nothing more is imported here.
        code = ExitCode.INTERRUPTED
        flush(sys.stderr, "torchmark: interrupted\n")
    except OSError as error:
        # Whoever read the output has enough of it, or the disk is full.
        discard(sys.stdout)
        code = ExitCode.FAILED if isinstance(error, BrokenPipeError) else _fail(f"torchmark: {error}")
    except Exception:
        import traceback

        code = _fail(traceback.format_exc().rstrip())
    flush(sys.stderr)
    return code


def _run(arguments: list[str]) -> int:
    if arguments in ([], ["--help"], ["-h"]) and not os.environ.get(COMPLETION_VARIABLE):
        if not is_closed(sys.stdout):
            print(overview())
        return 0
    from torchmark.cli.program import run

    return run(arguments)


def _fail(text: str) -> int:
    from torchmark.cli.output import echo

    echo(text, err=True)
    return ExitCode.FAILED
