"""Looks at the machine: `/proc`, `/sys`, the programs on the path, the interpreter's torch.

Whatever cannot be read is None; nothing here fails because a machine is unusual.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchmark.errors import WorkerError
from torchmark.model.machine import Machine, Tool, TorchBuild
from torchmark.native.guarding import run_guarded
from torchmark.wire.messages import revive

# A tool that does not tell its version within this time is as good as none. Importing torch from a cold disk
# can take most of a minute.
TOOL_TIMEOUT_S = 10
TORCH_TIMEOUT_S = 120

COMPILERS = ("c++", "g++", "clang++")

PERSONALITY_NO_RANDOMIZE = 0x0040000
PTRACE_SEIZE = 0x4206

# Runs in a process of its own: importing torch is slow, and a broken one may take its process down. The empty
# entry of sys.path goes first, or a folder named torch here would be taken for the real one.
_TORCH_PROGRAM = """
import json, sys
sys.path[:] = [entry for entry in sys.path if entry]
import torch
try:
    capability = torch.backends.cpu.get_cpu_capability()
except AttributeError:
    lines = torch.__config__.show().splitlines()
    capability = next((x.split(":")[1].strip() for x in lines if "CPU capability" in x), None)
accelerator = None
if hasattr(torch, "accelerator"):
    if torch.accelerator.is_available():
        accelerator = torch.accelerator.current_accelerator().type
elif torch.cuda.is_available():
    accelerator = "cuda"
print(json.dumps({
    "version": torch.__version__,
    "debug": bool(torch.version.debug),
    "cpu_capability": capability,
    "num_threads": torch.get_num_threads(),
    "accelerator": accelerator,
    "commit": torch.version.git_version,
    "build": torch.__config__.show(),
}))
"""

_PERSONALITY_PROGRAM = f"""
import ctypes, sys
sys.exit(ctypes.CDLL(None).personality({PERSONALITY_NO_RANDOMIZE}) == -1)
"""


def probe_machine(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> Machine:
    """Find out all facts; `root` is where `proc` and `sys` are, `environ` says where programs are."""
    torch, torch_problem = probe_torch(sys.executable)
    path = environ.get("PATH", os.defpath)
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        cpu_model=read_cpu_model(root),
        cores_online=os.cpu_count(),
        cores_allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cpu_quota=read_cpu_quota(root),
        governor=_read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        turbo=read_turbo(root),
        load=_load(root),
        virtual=_is_virtual(root),
        steal_share=read_steal_share(root),
        aslr=_aslr(root),
        aslr_can_be_disabled=_can_disable_aslr(),
        valgrind=find_tool(["valgrind"], path),
        compiler=find_tool([environ["CXX"]] if environ.get("CXX", "").strip() else COMPILERS, path),
        # Installed beside the interpreter, but not on the path unless the environment is activated.
        py_spy=find_tool(["py-spy"], f"{os.path.dirname(sys.executable)}{os.pathsep}{path}"),
        ptrace_allowed=_may_ptrace(),
        torch=torch,
        torch_problem=torch_problem,
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _field(path: Path, name: str) -> str | None:
    match = re.search(rf"^{name}\s*:\s*(.+)$", _read(path) or "", re.MULTILINE)
    return match.group(1) if match else None


def read_cpu_model(root: Path) -> str | None:
    """What the processor calls itself."""
    return _field(root / "proc/cpuinfo", "model name")


def read_cpu_quota(root: Path) -> float | None:
    """The tightest CPU limit of the control groups this process is in, in cores."""
    groups = [line.split(":", 2)[2] for line in (_read(root / "proc/self/cgroup") or "").splitlines() if "::" in line]
    folders = [root / "sys/fs/cgroup"]
    for group in groups:
        parts = [part for part in group.split("/") if part]
        folders += [root.joinpath("sys/fs/cgroup", *parts[: i + 1]) for i in range(len(parts))]
    limits = [_quota(_read(folder / "cpu.max")) for folder in folders]
    legacy = root / "sys/fs/cgroup/cpu"
    limits.append(_quota(f"{_read(legacy / 'cpu.cfs_quota_us')} {_read(legacy / 'cpu.cfs_period_us')}"))
    return min((limit for limit in limits if limit is not None), default=None)


def _quota(text: str | None) -> float | None:
    """Parse "<quota> <period>"; "max" or a negative quota stand for no limit."""
    try:
        quota, period = (float(part) for part in (text or "").split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def read_available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a new program could use: what the machine has left, or what a control group leaves of it."""
    left = _field(root / "proc/meminfo", "MemAvailable")
    sizes = [int(left.split()[0]) * 1024] if left else []
    group = root / "sys/fs/cgroup"
    limit, used = _read(group / "memory.max"), _read(group / "memory.current")
    if limit and used and limit.isdigit() and used.isdigit():
        sizes.append(max(int(limit) - int(used), 0))
    return min(sizes, default=None)


def read_turbo(root: Path) -> bool | None:
    """Whether cores may run above their base frequency."""
    cpu = root / "sys/devices/system/cpu"
    no_turbo = _read(cpu / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _read(cpu / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _load(root: Path) -> float | None:
    text = _read(root / "proc/loadavg")
    return float(text.split()[0]) if text else None


def _is_virtual(root: Path) -> bool | None:
    flags = _field(root / "proc/cpuinfo", "flags")
    return None if flags is None else "hypervisor" in flags.split()


def read_steal_share(root: Path) -> float | None:
    """Stolen time as a share of all time, from the totals since boot."""
    first = (_read(root / "proc/stat") or "").splitlines()[:1]
    ticks = [int(t) for t in first[0].split()[1:9]] if first else []
    # user, nice, system, idle, iowait, irq, softirq, steal
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else None


def _aslr(root: Path) -> bool | None:
    level = _read(root / "proc/sys/kernel/randomize_va_space")
    return None if level is None else level != "0"


def _can_disable_aslr() -> bool | None:
    if sys.platform != "linux":
        return None
    done = _run([sys.executable, "-I", "-S", "-c", _PERSONALITY_PROGRAM], TOOL_TIMEOUT_S)
    return None if done is None else done.returncode == 0


def _may_ptrace() -> bool | None:
    """Try it on a child of our own, as a profiler would: settings in /proc do not tell of a container's filter."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    # A child that waits for input that never comes, in this interpreter so that it needs no other program.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as child:
        try:
            return bool(libc.ptrace(PTRACE_SEIZE, child.pid, None, None) == 0)
        finally:
            child.send_signal(signal.SIGKILL)


def find_tool(names: Sequence[str], path: str) -> Tool | None:
    """The first of these programs on the path, with the first line it prints for --version.

    A name may be a command with arguments, such as a user's `CXX="ccache g++"`.
    """
    commands = ([shutil.which(first, path=path), *rest] for first, *rest in map(shlex.split, names))
    found, *rest = next((command for command in commands if command[0]), [None])
    if found is None:
        return None
    done = _run([found, *rest, "--version"], TOOL_TIMEOUT_S)
    lines = done.stdout.splitlines() if done is not None and done.returncode == 0 else []
    return Tool(found, lines[0].strip() if lines else None)


def probe_torch(
    python: str, environ: Mapping[str, str] | None = None, sys_path: Sequence[str] | None = None
) -> tuple[TorchBuild | None, str | None]:
    """The torch of an interpreter, or why it has none that works.

    `environ` is the environment it is asked in, and `sys_path` where it looks for torch, if not the usual.
    """
    program = _TORCH_PROGRAM if sys_path is None else f"import sys\nsys.path[:] = {list(sys_path)!r}\n{_TORCH_PROGRAM}"
    done = _run([python, "-c", program], TORCH_TIMEOUT_S, environ)
    if done is None:
        return None, f"importing torch did not end within {TORCH_TIMEOUT_S} s"
    if done.returncode < 0:
        return None, f"importing torch ended with signal {-done.returncode}"
    try:
        # Its last line: some builds of torch, or what they load, print something when they are imported.
        return revive(TorchBuild, json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])), None
    except (ValueError, RecursionError, WorkerError):
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"importing torch ended with exit code {done.returncode}"


def _run(
    command: Sequence[str], timeout_s: float, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    try:
        with run_guarded(
            command,
            env=None if environ is None else dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            texts = [data.decode(errors="replace") for data in process.communicate(timeout=timeout_s)]
    except (OSError, subprocess.TimeoutExpired):
        return None
    return subprocess.CompletedProcess(process.args, process.returncode, *texts)
