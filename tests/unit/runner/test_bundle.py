from __future__ import annotations

import json
import subprocess
import sys

from torchmark.runner.link import BOOTSTRAP, make_bundle


def test_the_bundle_is_complete_and_has_nothing_else() -> None:
    sources = json.loads(make_bundle())
    assert {"torchmark", "torchmark.errors", "torchmark.worker.zygote", "torchmark.measure.snippet"} <= set(sources)
    assert not [name for name in sources if name.split(".")[1:2] in (["runner"], ["cli"], ["report"], ["api"])]
    # Ours re-exports names that are not in the bundle.
    assert sources["torchmark"] == ""


def test_it_can_be_imported_where_torchmark_is_not_installed() -> None:
    # Everything but what needs torch, in an interpreter without site-packages.
    code = BOOTSTRAP.replace(
        "from torchmark.worker.start import main\n    main(control)", "import torchmark.worker.start"
    )
    program = f"""
import json, os, socket, struct, sys
ours, theirs = socket.socketpair()
data = sys.stdin.buffer.read()
import threading
threading.Thread(target=lambda: ours.sendall(struct.pack("!I", len(data)) + data)).start()
os.dup2(theirs.fileno(), 0)
exec({code!r})
print(sys.modules["torchmark.worker.start"].__name__, "site-packages" in str(sys.path))
"""
    # By its standard input: one argument may not be that long.
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, input=make_bundle(), capture_output=True)
    assert done.stdout == b"torchmark.worker.start False\n", done.stderr
