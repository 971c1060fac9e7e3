"""Facts about this machine, the cores that a run may use, and what a run notes of where it ran."""

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
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmark.errors import UsageError
from torchmark.model.environment import Machine, Tool, TorchBuild
from torchmark.model.plain import PlainError, from_plain
from torchmark.model.run import Host, Source
from torchmark.processes import run_guarded

# A tool that does not answer within this time is as good as none. Importing torch from a cold disk
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


def probe_machine(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> Machine:
    """Find out all facts; `root` is where `proc` and `sys` are, `environ` says where programs are."""
    torch, torch_problem = probe_torch(sys.executable)
    path = environ.get("PATH", os.defpath)
    flags, load = read_field(root / "proc/cpuinfo", "flags"), _read(root / "proc/loadavg")
    aslr = _read(root / "proc/sys/kernel/randomize_va_space")
    return Machine(
        **_describe_hardware(root),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        governor=_read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        turbo=read_turbo(root),
        load=float(load.split()[0]) if load else None,
        virtual=None if flags is None else "hypervisor" in flags.split(),
        steal_share=read_steal_share(root),
        aslr=None if aslr is None else aslr != "0",
        aslr_can_be_disabled=_can_disable_aslr(),
        valgrind=find_tool(["valgrind"], path),
        compiler=_find_compiler(environ),
        # Installed beside the interpreter, but not on the path unless the environment is activated.
        py_spy=find_tool(["py-spy"], f"{os.path.dirname(sys.executable)}{os.pathsep}{path}"),
        ptrace_allowed=_may_ptrace(),
        torch=torch,
        torch_problem=torch_problem,
    )


def _describe_hardware(root: Path) -> dict[str, Any]:
    """What a run notes of its machine, too."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu_model": read_cpu_model(root),
        "cores_online": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cpu_quota": read_cpu_quota(root),
    }


def _find_compiler(environ: Mapping[str, str]) -> Tool | None:
    named = environ.get("CXX", "").strip()
    return find_tool([named] if named else COMPILERS, environ.get("PATH", os.defpath))


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def read_field(path: Path, name: str) -> str | None:
    match = re.search(rf"^{name}\s*:\s*(.+)$", _read(path) or "", re.MULTILINE)
    return match.group(1) if match else None


def read_cpu_model(root: Path) -> str | None:
    return read_field(root / "proc/cpuinfo", "model name")


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
        quota, period = map(float, (text or "").split())
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def read_available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a new program could use: what the machine has left, or what a control group leaves of it."""
    left = read_field(root / "proc/meminfo", "MemAvailable")
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


def read_steal_share(root: Path) -> float | None:
    """Stolen time as a share of all time, from the totals since boot."""
    first, _, _ = (_read(root / "proc/stat") or "").partition("\n")
    ticks = [int(t) for t in first.split()[1:9]]
    # user, nice, system, idle, iowait, irq, softirq, steal
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else None


def _can_disable_aslr() -> bool | None:
    if sys.platform != "linux":
        return None
    program = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).personality({PERSONALITY_NO_RANDOMIZE}) == -1)"
    done = _run([sys.executable, "-I", "-S", "-c", program], TOOL_TIMEOUT_S)
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
        return from_plain(TorchBuild, json.loads(done.stdout.rstrip("\n").rpartition("\n")[2]), "torch", {}), None
    except (ValueError, RecursionError, PlainError):
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


def choose_cores(
    wanted: str | None = None, allowed: Collection[int] | None = None, root: Path = Path("/")
) -> list[int]:
    """The cores to use, in ascending order, at least one.

    `wanted` is a number of cores, or a list such as "0,2-3". `allowed` are those that the system lets this process use.

    >>> choose_cores("2", allowed=[0, 1, 2, 3])
    [0, 1]
    >>> choose_cores("1,3", allowed=[0, 1, 2, 3])
    [1, 3]
    """
    if allowed is None:
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    found = sorted(allowed)
    if wanted is None:
        quota = read_cpu_quota(root)
        # A part of a core is none: what is throttled in the middle of a measurement measures the throttle.
        return found if quota is None else found[: max(1, int(quota))]
    if _is_number(wanted):
        number = int(wanted)
        if not 1 <= number <= len(found):
            raise UsageError(f"{number} cores cannot be used: there are {len(found)} ({describe_cores(found)}).")
        return found[:number]
    chosen = set()
    for core in _read_list(wanted):
        if core not in found:
            raise UsageError(f"Core {core} cannot be used: there are {describe_cores(found)}.")
        chosen.add(core)
    return sorted(chosen)


def choose_idlest(cores: Sequence[int], number: int = 1, root: Path = Path("/")) -> tuple[int, ...]:
    """As many of these cores as are wanted: those that did the least since the last time somebody asked.

    Where all did the same, or the system does not tell, the last ones: most systems have their interrupts on the first.
    """
    busy = _read_busy(root)
    before = {core: _last_busy.get(core, 0) for core in busy}
    _last_busy.update(busy)
    ordered = sorted(cores, key=lambda core: (busy.get(core, 0) - before.get(core, 0), -core))
    return tuple(sorted(ordered[: max(1, number)]))


# Ticks that each core had been busy for when it was last asked for.
_last_busy: dict[int, int] = {}


def _read_busy(root: Path) -> dict[int, int]:
    busy = {}
    for line in (_read(root / "proc/stat") or "").splitlines():
        name, *ticks = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdigit() and len(ticks) >= 5:
            # All but what it was idle, or waited for a disk.
            busy[int(name[3:])] = sum(map(int, (*ticks[:3], *ticks[5:8])))
    return busy


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _read_list(text: str) -> Iterable[int]:
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)) or (dash and int(first) > int(last)):
            raise UsageError(f"{text!r} names no cores: say how many, such as 2, or which, such as 0,2-3.")
        yield from range(int(first), int(last or first) + 1)


def describe_cores(cores: Sequence[int]) -> str:
    """A list of cores as people write it.

    >>> describe_cores([0, 1, 2, 5])
    '0-2,5'
    """
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def describe_host(environ: Mapping[str, str], root: Path = Path("/")) -> Host:
    compiler = _find_compiler(environ)
    return Host(**_describe_hardware(root), compiler=compiler.version if compiler else None)


def describe_sources(suites: Iterable[str]) -> tuple[Source, ...]:
    """Each suite once; of those that are files, the commit of the repository they lie in."""
    return tuple(_describe_source(suite) for suite in dict.fromkeys(suites))


def _describe_source(suite: str) -> Source:
    if not os.path.isfile(suite):
        return Source(suite)
    folder = os.path.dirname(os.path.abspath(suite))
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return Source(suite)
    # Of the file's own folder: what else is being worked on in the repository is another matter.
    return Source(suite, commit, dirty=bool(_ask_git(folder, "status", "--porcelain", "--", ".")))


def _ask_git(folder: str, *arguments: str) -> str | None:
    """What git answers; None where there is no git, or no repository."""
    done = _run(["git", "-C", folder, "--no-optional-locks", *arguments], TOOL_TIMEOUT_S)
    return done.stdout.strip() if done is not None and done.returncode == 0 else None
