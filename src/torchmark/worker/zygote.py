"""A process that has imported torch, prepares itself once, and then only forks: a child for every job.

Apart from `start.py`, because it imports torch.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import platform
import select
import signal
import socket
import sys
import tempfile
import time

import torch

from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.torch_files import read_sdk
from torchmark.model.job import CountJob, Job, Place, TimeJob
from torchmark.worker import protocol
from torchmark.worker.check_job import load_comparison
from torchmark.worker.child import do_job, run_child
from torchmark.worker.compile_job import WARM_UP_INFERENCE, WARM_UP_SETUP, WARM_UP_TRAINING, load_compiler
from torchmark.worker.count_job import Calls, Marks
from torchmark.worker.process import adopt_orphans, count_threads, end_group, reap_others, release_free_memory

# From what is just small enough to lie in the heap to the smallest block, each three quarters of the one before.
LARGEST_GAP = 1 << 16
SMALLEST_GAP = 32
# Blocks are taken in batches of so many bytes, for asking how much is free takes longer than taking a block.
BATCH_BYTES = 1 << 16
MOST_IN_BATCH = 256
# There are hundreds of kilobytes of gaps, not more than this.
MOST_BYTES = 256 << 20

# Where the next block lies behind all others, as far as caches and pages are concerned.
ALIGNMENT = 1 << 16

_FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _State(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS.split()]


def fill_gaps() -> None:
    """Take whatever is free, and keep it for ever. Where the C library does not tell what is free, nothing happens."""
    release_free_memory()
    libc = ctypes.CDLL(None)
    ask = getattr(libc, "mallinfo2", None)  # glibc 2.33
    if ask is None:
        return
    ask.restype = _State
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]

    def count_free() -> int:
        """Without what lies behind everything else, which is no gap."""
        state = ask()
        return int(state.fordblks - state.keepcost)

    size, taken = LARGEST_GAP, 0
    while size >= SMALLEST_GAP and taken < MOST_BYTES:
        number = max(1, min(MOST_IN_BATCH, BATCH_BYTES // size))
        before = count_free()
        for _ in range(number):
            libc.malloc(size)
        taken += number * size
        if before - count_free() < number * size // 2:
            # Most of it came from behind: there are no gaps of this size any more.
            size = size * 3 // 4 & ~15
    # What follows lies alike in all processes, however much lies before it.
    here = libc.malloc(SMALLEST_GAP)
    libc.malloc(ALIGNMENT - (here + SMALLEST_GAP + 32) % ALIGNMENT)


# How late the end of a child that did not ring is noticed, at most.
LOOKING_INTERVAL_S = 0.02


class ParentGone(Exception):
    """Nobody is there to work for."""


def serve_in_python(control: socket.socket) -> tuple[int, ...] | None:
    """Fork for every job. Returns in each child, with its descriptors; None when the parent is gone."""
    try:
        while True:
            received = protocol.receive(control)
            if received is None:
                return None
            plain, descriptors = received
            # A Stop that came too late, after its job had ended, is none to act upon.
            if isinstance(protocol.decode(plain), protocol.Go):
                rope = _carry_out(control)
                if rope is not None:
                    control.close()
                    return (*descriptors, rope)
            for descriptor in descriptors:
                os.close(descriptor)
    except ParentGone:
        return None


def _carry_out(control: socket.socket) -> int | None:
    """Fork, and wait for the child's end. In the child: the descriptor to ring with."""
    threads = count_threads()
    if threads != 1:
        _send(control, protocol.Refused("threads", f"has {threads} threads and cannot be forked"))
        return None
    bell, rope = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(bell)
        return rope
    os.close(rope)
    try:
        _send(control, protocol.Started(pid))
        _await_end(pid, control, bell)
    finally:
        # Before its status is taken, or its number would no longer stand for its group.
        end_group(pid)
        _, status = os.waitpid(pid, 0)
        reap_others()
        os.close(bell)
    _send(control, protocol.Ended(status))
    return None


def _await_end(pid: int, control: socket.socket, bell: int) -> None:
    """Until the child has rung the bell or ended, or the parent says stop.

    A child that just ends is found by looking: the other means that Linux has are unknown to Valgrind, or would be
    counted, and both kinds of zygote shall behave alike.
    """
    # Not select(), which knows no descriptors above a thousand.
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(bell, select.POLLIN)
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        ready = dict(poll.poll(LOOKING_INTERVAL_S * 1000))
        if control.fileno() in ready:
            received = protocol.receive(control)
            if received is None:
                raise ParentGone
            if isinstance(protocol.decode(received[0]), protocol.Stop):
                return
        elif bell in ready:
            if os.read(bell, 1):
                return
            # Closed without a ring: the child is about to end, or has closed what is not its own.
            time.sleep(LOOKING_INTERVAL_S)


def _send(control: socket.socket, message: protocol.Message) -> None:
    try:
        protocol.send(control, protocol.encode(message))
    except OSError as error:
        raise ParentGone from error


# What many statements use. Under Valgrind, code that ran here is translated already in every child.
_OPERATORS = """
y = x * w; y = x + 1; y = x - w; y = x / 2; y = x @ x; y = x.sum(); y = x.view(16); y = x[0]; y = x.t()
y = torch.relu(x); y = torch.empty(4); y = torch.zeros(4); y = torch.ones(4); y = torch.cat([x, x]); y = x.clone()
x += 1; y = x.mean().item(); y = linear(x)
"""
# Starts a thread for every accelerator, and a process with threads cannot be forked: only where torch knows of none.
_BACKWARD = "(x * w).sum().backward()"
_SETUP = "x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True); linear = torch.nn.Linear(4, 4)"
_ROUNDS = 16

# Loading TorchScript and letting it settle, with a gradient and without, runs much the same code for every model.
_SCRIPT = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x, w):
        return torch.relu(self.linear(x) * w + x)
torch.jit.save(torch.jit.script(Model()), file)
"""
_LOAD = """
x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True); model = torch.jit.load(file)
for _ in range(3):
    with torch.no_grad():
        model(x, w)
"""


def prepare(marks: Marks | None, *, compiling: bool = False, scripting: bool = False) -> None:
    """Run what jobs will run, then leave no garbage to anyone."""
    torch.set_num_threads(1)
    protocol.prepare_to_decode()
    if compiling:
        # Callgrind does not look on before a job has compiled and warmed up its statement: tracing Python and loading
        # graphs takes a second without it, and minutes with it.
        _rehearse(None)
        if load_compiler():
            _rehearse_compiling()
    else:
        # Making TorchScript is no part of a job, and takes several times as long once Callgrind looks on.
        model = _script() if scripting else None
        # With all callers of everything, looking on costs memory and minutes: then only once a statement is warm.
        looked_at = marks if marks is not None and marks.calls is None else None
        if looked_at is not None:
            looked_at.start()
        _rehearse(looked_at)
        if model is not None:
            _rehearse_loading(model)
    # Objects that live now are never looked at again: a collection in a child would copy every page of them.
    gc.collect()
    gc.freeze()
    gc.disable()
    release_free_memory()


def clear(marks: Marks, scratch: str) -> None:
    """Throw away what was collected so far, which every child would otherwise write once more."""
    marks.forget()
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))


def _rehearse(marks: Marks | None) -> None:
    stmt = f"{_OPERATORS}{_BACKWARD}" if _is_for_cpu_only() else _OPERATORS
    if marks is None:
        SnippetTimer(stmt, _SETUP, globals={"torch": torch}).timeit(_ROUNDS)
        return
    # The way a child does it, so that its own code is translated too.
    for seed in (1, 0):
        answer = _do(CountJob(stmt, _SETUP, Place("/"), number=_ROUNDS, layouts=(seed,)), marks)
        assert isinstance(answer, protocol.Counted), answer
    protocol.pack(protocol.encode(answer))


def _script() -> io.BytesIO | None:
    """A model as TorchScript, to be loaded; None where there is none, of which a job that needs it will say more."""
    file = io.BytesIO()
    try:
        SnippetTimer("pass", _SCRIPT, globals={"torch": torch, "file": file}).timeit(1)
    except Exception as error:
        print(error, file=sys.stderr)
        return None
    file.seek(0)
    return file


def _rehearse_loading(file: io.BytesIO) -> None:
    stmt = "model(x, w).sum().backward()" if _is_for_cpu_only() else "model(x, w)"
    SnippetTimer(stmt, _LOAD, globals={"torch": torch, "file": file}).timeit(_ROUNDS)


def _rehearse_compiling() -> None:
    """Compile something, then find it in the cache: both ways have modules to load, and things to find out once.

    Should that fail, a job that needs it will say why.
    """
    stmt = WARM_UP_TRAINING if _is_for_cpu_only() else WARM_UP_INFERENCE
    for _ in range(2):
        answer = _do(TimeJob(stmt, WARM_UP_SETUP, Place("/"), number=_ROUNDS, watch_compiler=True), None)
        if isinstance(answer, protocol.Failed):
            print(answer.message, file=sys.stderr)


def _do(job: Job, marks: Marks | None) -> protocol.Message:
    with tempfile.TemporaryFile() as file:
        file.write(protocol.pack(protocol.encode(job)))
        return do_job(file, marks)


def _is_for_cpu_only() -> bool:
    """By how torch was built: asking for devices would wake them up."""
    return torch.version.cuda is None and torch.version.hip is None and "USE_XPU=ON" not in torch.__config__.show()


# The name of the importer that brought our modules here.
IMPORTER = "_TorchmarkBundle"


def serve(control: socket.socket, hello: protocol.Hello) -> None:
    """Take one job after the other until the parent closes the connection."""
    adopt_orphans()
    # The terminal's interrupt is for the parent, which decides what becomes of the job.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    marks = Marks(hello.library) if hello.library is not None else None
    if marks is not None and hello.frames is not None:
        marks.calls = Calls(hello.frames)
    if marks is not None and not marks.watched:
        refused = protocol.Refused("unwatched", f"{sys.executable} does not run under Valgrind, which was to start it.")
        protocol.send(control, protocol.encode(refused))
        return
    if hello.checking:
        load_comparison()
    prepare(marks, compiling=hello.compiling, scripting=hello.scripting)
    forget_ourselves()
    zygote = os.getpid()
    ready = protocol.encode(describe())
    if marks is not None:
        clear(marks, hello.scratch)
    else:
        # As the last thing: whatever is done before leaves gaps.
        fill_gaps()
    protocol.send(control, ready)
    # For counting in C, which leaves the heap alone: every child then starts from the same.
    descriptors = serve_in_python(control) if marks is None else marks.serve(control.fileno())
    if descriptors is not None:
        run_child(descriptors, marks, zygote)


def describe() -> protocol.Ready:
    return protocol.Ready(
        protocol=protocol.PROTOCOL,
        pid=os.getpid(),
        python_version=platform.python_version(),
        torch_version=str(torch.__version__),
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
