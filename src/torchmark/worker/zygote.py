"""The zygote: has imported torch, prepares itself once, and then only forks: a child for every job.

It has exactly one thread whenever it forks, and it never runs a user's code itself.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys

import torch

from torchmark.measure.sdk import read_sdk
from torchmark.wire import frames
from torchmark.wire.messages import PROTOCOL, Hello, Ready, Refused, encode
from torchmark.worker.calls import Calls
from torchmark.worker.checking import load_comparison
from torchmark.worker.child import run_child
from torchmark.worker.heap import fill_gaps
from torchmark.worker.loop import serve_in_python
from torchmark.worker.marks import Marks
from torchmark.worker.process import adopt_orphans
from torchmark.worker.rehearsal import clear, prepare

# The name of the importer that brought our modules here.
IMPORTER = "_TorchmarkBundle"


def serve(control: socket.socket, hello: Hello) -> None:
    """Take one job after the other until the parent closes the connection."""
    adopt_orphans()
    # The terminal's interrupt is for the parent, which decides what becomes of the job.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    marks = Marks(hello.library) if hello.library is not None else None
    if marks is not None and hello.frames is not None:
        marks.calls = Calls(hello.frames)
    if marks is not None and not marks.watched:
        refused = Refused("unwatched", f"{sys.executable} does not run under Valgrind, which was to start it.")
        frames.send(control, encode(refused))
        return
    if hello.checking:
        load_comparison()
    prepare(marks, compiling=hello.compiling, scripting=hello.scripting)
    forget_ourselves()
    zygote = os.getpid()
    ready = encode(describe())
    if marks is not None:
        clear(marks, hello.scratch)
    else:
        # As the last thing: whatever is done before leaves gaps.
        fill_gaps()
    frames.send(control, ready)
    # For counting in C, which leaves the heap alone: every child then starts from the same.
    descriptors = serve_in_python(control) if marks is None else marks.serve(control.fileno())
    if descriptors is not None:
        run_child(descriptors, marks, zygote)


def describe() -> Ready:
    """What this worker is made of."""
    return Ready(
        protocol=PROTOCOL,
        pid=os.getpid(),
        python_version=platform.python_version(),
        torch_version=str(torch.__version__),
        torch_file=str(torch.__file__),
        cpu_capability=find_cpu_capability(),
        debug_symbols="BUILD_TYPE=RelWithDebInfo" in torch.__config__.show(),
        sdk=read_sdk(),
    )


def find_cpu_capability() -> str | None:
    """The instruction set that torch's kernels are chosen for in this process."""
    try:
        return str(torch.backends.cpu.get_cpu_capability())
    except AttributeError:  # torch before 2.0
        lines = torch.__config__.show().splitlines()
        return next((line.split(":")[1].strip() for line in lines if "CPU capability" in line), None)


def forget_ourselves() -> None:
    """Make our own modules unknown here: what a user's code imports by our name is what its interpreter has."""
    for name in [name for name in sys.modules if name.split(".")[0] == "torchmark"]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != IMPORTER]
