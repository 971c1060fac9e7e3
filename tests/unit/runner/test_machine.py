from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from torchmark.errors import UsageError
from torchmark.model.environment import Tool, TorchBuild
from torchmark.runner import machine
from torchmark.runner.machine import choose_cores, describe_cores, describe_host, describe_sources


def with_quota(root: Path, text: str) -> Path:
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text(text)
    return root


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000", [0, 2, 3]),
        ("200000 100000", [0, 2]),
        ("190000 100000", [0]),
        ("50000 100000", [0]),
        ("900000 100000", [0, 2, 3]),
    ],
)
def test_a_share_of_time_is_worth_so_many_whole_cores(tmp_path: Path, quota: str, expected: list[int]) -> None:
    assert choose_cores(allowed=[3, 0, 2], root=with_quota(tmp_path, quota)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"), [("1", [0]), ("3", [0, 2, 3]), ("2,3", [2, 3]), ("2-3,0", [0, 2, 3]), ("3, 3", [3])]
)
def test_cores_are_chosen_by_number_or_by_name(wanted: str, expected: list[int]) -> None:
    assert choose_cores(wanted, allowed=[0, 2, 3]) == expected


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("0", "0 cores cannot be used"),
        ("4", "there are 3"),
        ("1,2", "Core 1 cannot be used: there are 0,2-3"),
        ("x", "names no cores"),
        ("3-2", "names no cores"),
        ("2-", "names no cores"),
        ("", "names no cores"),
        ("-1", "names no cores"),
        ("²", "names no cores"),
        ("2-3,²", "names no cores"),
        ("2-99999999999", "Core 4 cannot be used"),
    ],
)
def test_cores_that_are_not_there_are_refused(wanted: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_cores(wanted, allowed=[0, 2, 3])


def test_cores_of_this_process_are_found() -> None:
    assert choose_cores()


@pytest.mark.parametrize(("cores", "expected"), [([], ""), ([1], "1"), ([0, 1, 3, 4, 5, 9], "0-1,3-5,9")])
def test_neighbours_are_told_as_a_span(cores: list[int], expected: str) -> None:
    assert describe_cores(cores) == expected


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_of_a_file_of_benchmarks_is_noted_and_whether_it_has_changed_since(tmp_path: Path) -> None:
    suite = tmp_path / "bench_x.py"
    suite.write_text("BENCHMARKS = {}")
    assert describe_sources([str(suite)])[0].commit is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    (source,) = describe_sources([str(suite), str(suite)])
    assert (source.commit, source.dirty) == (git(tmp_path, "rev-parse", "HEAD"), False)
    suite.write_text("BENCHMARKS = {1: 2}")
    assert describe_sources([str(suite)])[0].dirty


def test_a_suite_that_comes_along_has_no_commit_of_its_own() -> None:
    (source,) = describe_sources(["standard"])
    assert (source.suite, source.commit, source.dirty) == ("standard", None, False)


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = tmp_path / "bench_x.py"
    suite.write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_sources([str(suite)])[0].commit is None


def test_the_machine_is_described_with_whatever_can_be_read(tmp_path: Path) -> None:
    host = describe_host({"PATH": str(tmp_path)}, root=tmp_path)
    assert host.cpu_model is None
    assert host.compiler is None
    assert host.system


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def program(folder: Path, name: str, body: str) -> Path:
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "300000 100000",
            },
            2.0,
        ),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, None),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 0.25),
        ({"sys/fs/cgroup/cpu.max": "garbage"}, None),
    ],
)
def test_the_tightest_cpu_limit_is_found(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    for path, text in files.items():
        write(tmp_path, path, text)
    assert machine.read_cpu_quota(tmp_path) == quota


@pytest.mark.parametrize(
    ("files", "turbo"),
    [
        ({}, None),
        ({"intel_pstate/no_turbo": "0\n"}, True),
        ({"intel_pstate/no_turbo": "1\n"}, False),
        ({"cpufreq/boost": "1\n"}, True),
        ({"cpufreq/boost": "0\n"}, False),
    ],
)
def test_turbo_on_intel_and_others(tmp_path: Path, files: dict[str, str], turbo: bool | None) -> None:
    for path, text in files.items():
        write(tmp_path, f"sys/devices/system/cpu/{path}", text)
    assert machine.read_turbo(tmp_path) is turbo


@pytest.mark.parametrize(
    ("stat_line", "share"),
    [
        ("cpu  50 0 20 20 0 0 0 10 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 0.1),
        ("cpu  0 0 0 0 0 0 0 0 0 0\n", None),
        ("cpu  1 2 3\n", None),
        ("", None),
    ],
)
def test_steal_is_a_share_of_all_time(tmp_path: Path, stat_line: str, share: float | None) -> None:
    write(tmp_path, "proc/stat", stat_line)
    assert machine.read_steal_share(tmp_path) == share


def test_a_tool_is_found_with_the_first_line_of_its_version(tmp_path: Path) -> None:
    file = program(tmp_path, "tool", "print('tool 1.2\\nmore')")
    assert machine.find_tool(["absent", "tool"], str(tmp_path)) == Tool(str(file), "tool 1.2")
    assert machine.find_tool(["absent"], str(tmp_path)) is None


def test_a_tool_that_fails_is_found_without_a_version(tmp_path: Path) -> None:
    file = program(tmp_path, "tool", "raise SystemExit(1)")
    assert machine.find_tool(["tool"], str(tmp_path)) == Tool(str(file), None)


def test_an_interpreter_that_is_not_there_has_no_torch() -> None:
    torch, problem = machine.probe_torch("/nowhere/python")
    assert torch is None
    assert problem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "No module named 'torch'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("raise SystemExit(3)", "exit code 3"),
        ("print('[1]')", "exit code 0"),
        ("print('{\"version\": 5}')", "exit code 0"),
        ('print(\'{"nothing": "known"}\')', "exit code 0"),
        ("print('[' * 100_000)", "exit code 0"),
    ],
)
def test_a_broken_torch_is_a_reason_and_not_an_error(tmp_path: Path, body: str, problem: str) -> None:
    torch, why = machine.probe_torch(str(program(tmp_path, "python", body)))
    assert torch is None
    assert problem in (why or "")


def test_a_torch_that_prints_something_is_understood(tmp_path: Path) -> None:
    facts = '{"version": "2.0", "debug": false, "cpu_capability": null, "num_threads": 2, "accelerator": null}'
    python = program(tmp_path, "python", f"print('Hello\\nfrom a plugin')\nprint('{facts}')")
    assert machine.probe_torch(str(python)) == (
        TorchBuild(version="2.0", debug=False, cpu_capability=None, num_threads=2, accelerator=None),
        None,
    )


def test_a_machine_without_proc_and_sys_and_programs_is_probed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "probe_torch", lambda python: (None, "not looked for"))
    found = machine.probe_machine(tmp_path, {"PATH": str(tmp_path)})
    assert (found.governor, found.load, found.steal_share, found.virtual, found.aslr) == (None,) * 5
    assert (found.valgrind, found.compiler) == (None, None)


def test_a_compiler_named_by_the_user_is_the_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "probe_torch", lambda python: (None, "not looked for"))
    mine = program(tmp_path, "my-c++", "import sys; print('mine', *sys.argv[1:])")
    found = machine.probe_machine(tmp_path, {"PATH": os.defpath, "CXX": str(mine)})
    assert found.compiler == Tool(str(mine), "mine --version")
    with_arguments = machine.probe_machine(tmp_path, {"PATH": os.defpath, "CXX": f"{mine} -std=c++17"})
    assert with_arguments.compiler == Tool(str(mine), "mine -std=c++17 --version")
