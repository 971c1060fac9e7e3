"""From facts about a machine to findings: what each means for measurements, and what to do about it.

Apart from the command, so that it is a pure function of facts; commands judge nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from torchmark.model.environment import Finding, FindingStatus, Machine, Tool

# Above this many runnable processes for each core we may use, something else competes with the measurement.
BUSY_LOAD_PER_CORE = 0.3
# One per cent of time stolen moves a median by as much as the changes people look for.
VISIBLE_STEAL = 0.01

NOT_TOLD = "this system does not tell"
HOST_DECIDES = "The host decides, and may change it at any time: compare in pairs, not across days."
LOOK_YOURSELF = "torchmark reads it from Linux's /proc and /sys: look by other means."


def diagnose(machine: Machine) -> tuple[Finding, ...]:
    """One finding a topic, in the order a person would check them."""
    return tuple(judge(machine) for judge in _JUDGES)


def _python(machine: Machine) -> Finding:
    return Finding("Python", FindingStatus.GOOD, f"{machine.python} on {machine.system}")


def _torch(machine: Machine) -> Finding:
    if machine.torch is None:
        advice = "Install torch in this environment, or run torchmark in one that has it."
        return Finding("torch", FindingStatus.PROBLEM, machine.torch_problem or "not found", advice)
    build = machine.torch
    where = build.accelerator or "CPU only"
    fact = f"{build.version}, {where}, {build.num_threads} threads by default"
    if build.debug:
        return Finding("torch", FindingStatus.PROBLEM, f"{fact}, debug build", "Measure a release build.")
    return Finding("torch", FindingStatus.GOOD, fact)


def _capability(machine: Machine) -> Finding:
    capability = machine.torch.cpu_capability if machine.torch else None
    if capability is None:
        return Finding("CPU capability", FindingStatus.NOTE, "not known", "A torch that works would tell.")
    if "AVX512" in capability.upper():
        advice = "Valgrind has no AVX-512: instruction counts describe the AVX2 kernels instead."
        return Finding("CPU capability", FindingStatus.NOTE, f"torch uses {capability}", advice)
    return Finding("CPU capability", FindingStatus.GOOD, f"torch uses {capability}")


def _cores(machine: Machine) -> Finding:
    allowed = machine.cores_allowed or machine.cores_online
    if allowed is None:
        return Finding("cores", FindingStatus.NOTE, NOT_TOLD, LOOK_YOURSELF)
    fact = f"{allowed} of {machine.cores_online} usable"
    if machine.cpu_model:
        fact += f" ({machine.cpu_model})"
    if machine.cpu_quota is not None and machine.cpu_quota < allowed:
        fact += f", limited to {machine.cpu_quota:g} cores' time"
        advice = "The container is paused when its share is used up; raise its CPU limit."
        return Finding("cores", FindingStatus.PROBLEM, fact, advice)
    if allowed == 1:
        advice = "Everything else runs on the core that is measured; allow a second one."
        return Finding("cores", FindingStatus.PROBLEM, fact, advice)
    return Finding("cores", FindingStatus.GOOD, fact)


def _frequency(machine: Machine) -> Finding:
    if machine.governor is None:
        fact = f"{NOT_TOLD} (usual in virtual machines)"
        return Finding(
            "frequency governor", FindingStatus.NOTE, fact, HOST_DECIDES if machine.virtual else LOOK_YOURSELF
        )
    if machine.governor != "performance":
        advice = "As root: cpupower frequency-set -g performance"
        return Finding("frequency governor", FindingStatus.PROBLEM, machine.governor, advice)
    return Finding("frequency governor", FindingStatus.GOOD, machine.governor)


def _turbo(machine: Machine) -> Finding:
    if machine.turbo is None:
        fact = f"{NOT_TOLD} (usual in virtual machines)"
        return Finding("turbo", FindingStatus.NOTE, fact, HOST_DECIDES if machine.virtual else LOOK_YOURSELF)
    if machine.turbo:
        advice = "Speed depends on temperature and on the other cores; switch it off for steady times."
        return Finding("turbo", FindingStatus.NOTE, "on", advice)
    return Finding("turbo", FindingStatus.GOOD, "off")


def _load(machine: Machine) -> Finding:
    cores = machine.cores_allowed or machine.cores_online
    if machine.load is None or cores is None:
        return Finding("load", FindingStatus.NOTE, NOT_TOLD, LOOK_YOURSELF)
    fact = f"{machine.load:.2f} over the last minute"
    if machine.load > BUSY_LOAD_PER_CORE * cores:
        return Finding(
            "load", FindingStatus.PROBLEM, fact, "Something else is busy: stop it, or wait until it is done."
        )
    return Finding("load", FindingStatus.GOOD, fact)


def _steal(machine: Machine) -> Finding:
    if machine.steal_share is None:
        return Finding("hypervisor", FindingStatus.NOTE, NOT_TOLD, LOOK_YOURSELF)
    kind = {True: "virtual machine", False: "no hypervisor", None: "unknown"}[machine.virtual]
    fact = f"{kind}, {machine.steal_share:.2%} of CPU time stolen since boot"
    if machine.steal_share >= VISIBLE_STEAL:
        advice = "Neighbours take CPU time away; use dedicated cores, or compare instruction counts."
        return Finding("hypervisor", FindingStatus.PROBLEM, fact, advice)
    if machine.virtual:
        advice = "Neighbours may share caches and clock speed unseen: compare in pairs, not across days."
        return Finding("hypervisor", FindingStatus.NOTE, fact, advice)
    return Finding("hypervisor", FindingStatus.GOOD, fact)


def _aslr(machine: Machine) -> Finding:
    topic = "address randomisation"
    if machine.aslr is None:
        return Finding(topic, FindingStatus.NOTE, NOT_TOLD, LOOK_YOURSELF)
    if not machine.aslr:
        return Finding(topic, FindingStatus.GOOD, "off")
    if machine.aslr_can_be_disabled:
        return Finding(topic, FindingStatus.GOOD, "on, and can be switched off for a process")
    advice = "Times differ from process to process by 1 to 3 %; allow personality() in the container's profile."
    return Finding(topic, FindingStatus.PROBLEM, "on, and cannot be switched off for a process", advice)


def _valgrind(machine: Machine) -> Finding:
    need = "Needed to count instructions. Debian, Ubuntu: apt-get install valgrind"
    return _judge_tool("Valgrind", machine.valgrind, need, "Install it anew.")


def _compiler(machine: Machine) -> Finding:
    need = "Needed for C++ statements and, once, for counting. Debian, Ubuntu: apt-get install g++"
    return _judge_tool("C++ compiler", machine.compiler, need, "Install it anew, or name another in CXX.")


def _py_spy(machine: Machine) -> Finding:
    need = "Needed for flame graphs. pip install py-spy"
    return _judge_tool("py-spy", machine.py_spy, need, "Install it anew.")


def _judge_tool(topic: str, tool: Tool | None, need: str, remedy: str) -> Finding:
    if tool is None:
        return Finding(topic, FindingStatus.PROBLEM, "not found", need)
    if tool.version is None:
        return Finding(
            topic, FindingStatus.PROBLEM, "found, but it does not run", f"{tool.path} --version fails. {remedy}"
        )
    return Finding(topic, FindingStatus.GOOD, f"{tool.version} ({tool.path})")


def _ptrace(machine: Machine) -> Finding:
    if machine.ptrace_allowed is None:
        return Finding("ptrace", FindingStatus.NOTE, NOT_TOLD, LOOK_YOURSELF)
    if not machine.ptrace_allowed:
        advice = "py-spy needs it. In a container: --cap-add SYS_PTRACE; else kernel.yama.ptrace_scope below 2."
        return Finding("ptrace", FindingStatus.PROBLEM, "refused", advice)
    return Finding("ptrace", FindingStatus.GOOD, "allowed for child processes")


_JUDGES: tuple[Callable[[Machine], Finding], ...] = (
    _python, _torch, _capability, _cores, _load, _steal, _frequency, _turbo, _aslr,
    _valgrind, _compiler, _py_spy, _ptrace,
)  # fmt: skip
