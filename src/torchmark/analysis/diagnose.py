"""From facts about a machine to findings: what each means for measurements, and what to do about it.

Apart from the command, so that it is a pure function of facts; commands judge nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torchmark.model.environment import Finding, FindingStatus, Machine, Tool

# Above this many runnable processes for each core we may use, something else competes with the measurement.
BUSY_LOAD_PER_CORE = 0.3
# One per cent of time stolen moves a median by as much as the changes people look for.
VISIBLE_STEAL = 0.01

NOT_TOLD = "this system does not tell"
HOST_DECIDES = "The host decides, and may change it at any time: compare in pairs, not across days."
LOOK_YOURSELF = "torchmark reads it from Linux's /proc and /sys: look by other means."

GOOD, NOTE, PROBLEM = FindingStatus.GOOD, FindingStatus.NOTE, FindingStatus.PROBLEM
# What is found of a topic: how good that is, the fact, and advice where there is any.
Judged: TypeAlias = "tuple[FindingStatus, str] | tuple[FindingStatus, str, str]"


def diagnose(machine: Machine) -> tuple[Finding, ...]:
    """One finding a topic, in the order a person would check them."""
    return tuple(Finding(topic, *judge(machine)) for topic, judge in _JUDGES.items())


def _judge_torch(machine: Machine) -> Judged:
    build = machine.torch
    if build is None:
        advice = "Install torch in this environment, or run torchmark in one that has it."
        return PROBLEM, machine.torch_problem or "not found", advice
    fact = f"{build.version}, {build.accelerator or 'CPU only'}, {build.num_threads} threads by default"
    return (PROBLEM, f"{fact}, debug build", "Measure a release build.") if build.debug else (GOOD, fact)


def _judge_capability(machine: Machine) -> Judged:
    capability = machine.torch.cpu_capability if machine.torch else None
    if capability is None:
        return NOTE, "not known", "A torch that works would tell."
    fact = f"torch uses {capability}"
    if "AVX512" in capability.upper():
        return NOTE, fact, "Valgrind has no AVX-512: instruction counts describe the AVX2 kernels instead."
    return GOOD, fact


def _judge_cores(machine: Machine) -> Judged:
    allowed = machine.cores_allowed or machine.cores_online
    if allowed is None:
        return NOTE, NOT_TOLD, LOOK_YOURSELF
    fact = f"{allowed} of {machine.cores_online} usable"
    if machine.cpu_model:
        fact += f" ({machine.cpu_model})"
    if machine.cpu_quota is not None and machine.cpu_quota < allowed:
        fact += f", limited to {machine.cpu_quota:g} cores' time"
        return PROBLEM, fact, "The container is paused when its share is used up; raise its CPU limit."
    if allowed == 1:
        return PROBLEM, fact, "Everything else runs on the core that is measured; allow a second one."
    return GOOD, fact


def _describe_hidden(machine: Machine) -> Judged:
    """What virtual machines do not see of the clock."""
    return NOTE, f"{NOT_TOLD} (usual in virtual machines)", HOST_DECIDES if machine.virtual else LOOK_YOURSELF


def _judge_frequency(machine: Machine) -> Judged:
    if machine.governor is None:
        return _describe_hidden(machine)
    if machine.governor != "performance":
        return PROBLEM, machine.governor, "As root: cpupower frequency-set -g performance"
    return GOOD, machine.governor


def _judge_turbo(machine: Machine) -> Judged:
    if machine.turbo is None:
        return _describe_hidden(machine)
    if machine.turbo:
        return NOTE, "on", "Speed depends on temperature and on the other cores; switch it off for steady times."
    return GOOD, "off"


def _judge_load(machine: Machine) -> Judged:
    cores = machine.cores_allowed or machine.cores_online
    if machine.load is None or cores is None:
        return NOTE, NOT_TOLD, LOOK_YOURSELF
    fact = f"{machine.load:.2f} over the last minute"
    if machine.load > BUSY_LOAD_PER_CORE * cores:
        return PROBLEM, fact, "Something else is busy: stop it, or wait until it is done."
    return GOOD, fact


def _judge_hypervisor(machine: Machine) -> Judged:
    if machine.steal_share is None:
        return NOTE, NOT_TOLD, LOOK_YOURSELF
    kind = {True: "virtual machine", False: "no hypervisor", None: "unknown"}[machine.virtual]
    fact = f"{kind}, {machine.steal_share:.2%} of CPU time stolen since boot"
    if machine.steal_share >= VISIBLE_STEAL:
        return PROBLEM, fact, "Neighbours take CPU time away; use dedicated cores, or compare instruction counts."
    if machine.virtual:
        return NOTE, fact, "Neighbours may share caches and clock speed unseen: compare in pairs, not across days."
    return GOOD, fact


def _judge_randomisation(machine: Machine) -> Judged:
    if machine.aslr is None:
        return NOTE, NOT_TOLD, LOOK_YOURSELF
    if not machine.aslr:
        return GOOD, "off"
    if machine.aslr_can_be_disabled:
        return GOOD, "on, and can be switched off for a process"
    advice = "Times differ from process to process by 1 to 3 %; allow personality() in the container's profile."
    return PROBLEM, "on, and cannot be switched off for a process", advice


def _judge_tool(tool: Tool | None, need: str, remedy: str = "Install it anew.") -> Judged:
    if tool is None:
        return PROBLEM, "not found", need
    if tool.version is None:
        return PROBLEM, "found, but it does not run", f"{tool.path} --version fails. {remedy}"
    return GOOD, f"{tool.version} ({tool.path})"


def _judge_ptrace(machine: Machine) -> Judged:
    if machine.ptrace_allowed is None:
        return NOTE, NOT_TOLD, LOOK_YOURSELF
    if not machine.ptrace_allowed:
        advice = "py-spy needs it. In a container: --cap-add SYS_PTRACE; else kernel.yama.ptrace_scope below 2."
        return PROBLEM, "refused", advice
    return GOOD, "allowed for child processes"


NEED_VALGRIND = "Needed to count instructions. Debian, Ubuntu: apt-get install valgrind"
NEED_COMPILER = "Needed for C++ statements and, once, for counting. Debian, Ubuntu: apt-get install g++"
NEED_PY_SPY = "Needed for flame graphs. pip install py-spy"
_JUDGES: dict[str, Callable[[Machine], Judged]] = {
    "Python": lambda machine: (GOOD, f"{machine.python} on {machine.system}"),
    "torch": _judge_torch,
    "CPU capability": _judge_capability,
    "cores": _judge_cores,
    "load": _judge_load,
    "hypervisor": _judge_hypervisor,
    "frequency governor": _judge_frequency,
    "turbo": _judge_turbo,
    "address randomisation": _judge_randomisation,
    "Valgrind": lambda machine: _judge_tool(machine.valgrind, NEED_VALGRIND),
    "C++ compiler": lambda machine: _judge_tool(
        machine.compiler, NEED_COMPILER, "Install it anew, or name another in CXX."
    ),
    "py-spy": lambda machine: _judge_tool(machine.py_spy, NEED_PY_SPY),
    "ptrace": _judge_ptrace,
}
