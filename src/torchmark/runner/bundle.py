"""The code that a worker runs, as data: sent to any interpreter, where nothing of ours has to be installed."""

from __future__ import annotations

import functools
import json
from pathlib import Path

SOURCE = Path(__file__).parents[1]

# The modules that may run in a foreign interpreter.
PORTABLE = ("errors.py", "model", "measure", "stats/order.py", "wire", "worker")

# The whole of what stands on a worker's command line. Python 2 and old Python 3 must be able to read it, so that they
# can say that they are too old.
#
# The connection is the standard input: any other descriptor has a number that depends on how many files the parent has
# open. Each piece is waited for in the kernel: in how many parts it arrives, which differs, must leave no trace in the
# heap, or two workers would not count the same.
BOOTSTRAP = r"""
import sys
sys.path[:] = [entry for entry in sys.path if entry]
if sys.version_info < (3, 9):
    sys.exit("torchmark needs Python 3.9 or newer there; this is %d.%d." % sys.version_info[:2])

def start():
    import importlib.abc
    import importlib.util
    import json
    import os
    import socket
    import struct

    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def read(size):
        data = control.recv(size, socket.MSG_WAITALL)
        return data if len(data) == size else sys.exit(0)

    sources = json.loads(read(struct.unpack("!I", read(4))[0]))

    class _TorchmarkBundle(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
        def find_spec(self, name, path=None, target=None):
            if name in sources:
                return importlib.util.spec_from_loader(name, self, is_package=self.is_package(name))

        def is_package(self, name):
            return any(other.startswith(name + ".") for other in sources)

        def get_source(self, name):
            return sources[name]

        def exec_module(self, module):
            exec(compile(sources[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)

    sys.meta_path.insert(0, _TorchmarkBundle())
    from torchmark.worker.start import main
    main(control)

start()
"""


@functools.lru_cache(maxsize=1)
def make_bundle() -> bytes:
    """The sources of all portable modules by name, as one JSON text."""
    sources = {}
    for part in PORTABLE:
        path = SOURCE / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            names = ("torchmark", *file.relative_to(SOURCE).with_suffix("").parts)
            sources[".".join(names[:-1] if names[-1] == "__init__" else names)] = file.read_text(encoding="utf-8")
            for depth in range(1, len(names)):
                sources.setdefault(".".join(names[:depth]), "")
    return json.dumps(sources).encode()
