"""The rooms of the house: which folder may import which, and what else must stay true of all files."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmark.runner.link import PORTABLE

SOURCE = Path(__file__).parents[1] / "src" / "torchmark"
FILES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted(path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__")

# A folder (or top-level module) and what it may import of torchmark, besides itself.
LOWER = {
    "errors",
    "files",
    "processes",
    "model",
    "stats",
    "measure",
    "native",
    "callgrind",
    "analysis",
    "report",
    "runner",
    "store",
}
MAY_IMPORT = {
    "errors": set(),
    "files": set(),
    "processes": {"errors"},
    "model": {"errors"},
    "stats": {"errors"},
    "measure": {"errors", "model", "stats"},
    "worker": {"errors", "model", "measure"},
    "callgrind": {"errors", "files", "model", "stats"},
    "native": {"errors", "files", "processes", "model"},
    "runner": {"errors", "files", "processes", "model", "worker", "native", "callgrind", "measure", "__init__"},
    "compare": {"errors", "model", "stats", "callgrind", "native", "runner", "analysis", "store"},
    "store": {"errors", "files", "processes", "model"},
    "define": {"errors", "model"},
    "suites": {"define"},
    "fuzz": {"errors", "model"},
    "analysis": {"errors", "stats", "model"},
    "report": {"errors", "stats", "model", "analysis"},
    "api": LOWER | {"compare", "define", "suites", "fuzz", "__init__"},
    "cli": LOWER | {"api", "compare", "define", "suites", "fuzz", "__init__"},
    "utils": {"analysis", "api", "fuzz", "measure", "model", "report"},
    "op_fuzzers": {"fuzz"},
    "__init__": LOWER | {"api", "define", "fuzz", "op_fuzzers", "utils"},
    "__main__": {"cli"},
}

# Of the room on the left, others may import these modules alone.
ENTRANCES = {"worker": {"torchmark.worker.protocol"}}

# What may be imported from outside the standard library, and where.
THIRD_PARTY = {
    "torch": {
        "measure/clock.py",
        "measure/torch_files.py",
        "worker/*",
        "api/timer.py",
        "api/timer_engines.py",
        "api/definitions.py",
        "fuzz/*",
        "api/inputs.py",
        "suites/overrides/tensors.py",
        "suites/overrides/loop.py",
    },
    "numpy": {
        "fuzz/*",
        "analysis/conditions.py",
        "analysis/rules.py",
    },
    "resvg_py": {"report/flame/picture.py"},
    "scipy": {"analysis/conditions.py", "analysis/rules.py", "stats/intervals.py"},
    "click": {"cli/*", "cli/commands/*"},
    "rich": {"cli/*", "cli/commands/*", "report/text/terminal.py", "report/text/machine.py"},
    "jinja2": {"report/html/templates.py"},
    "ray": {"runner/cluster/ray_fleet.py"},
}

# Runs inside any interpreter the user points at: Python 3.9, the standard library and that interpreter's torch.
# The bundle that is sent there is made of the same.

# Where text may be written to a standard stream. What is printed by the others goes through `cli/output.py`, which lets
# nothing through that steers a terminal or the log of continuous integration.
MAY_PRINT = {
    "cli/output.py",
    "cli/main.py",  # the overview, before anything else is loaded
    "cli/startup.py",
    "cli/commands/cmd_doctor.py",  # a console that does not write: what it would is printed with `echo`
    "cli/commands/cmd_rm.py",  # click's question, which is a number and words of ours
    "api/compare.py",  # through `printable_lines`
    "report/text/terminal.py",  # a spinner, through `printable`
    "runner/folders.py",  # one line, made printable there: the runner knows nothing of reports
    "report/progress.py",  # a bar, which moves the cursor, through `printable`
}
# Processes of their own, whose output the parent reads.
PRINTS_TO_PARENT = {"worker"}
PRINTING = re.compile(
    r"print|click\.(?:echo|secho|echo_via_pager|confirm|prompt|progressbar)|(?:.*\.)?Console|.*std(?:out|err)(?:\.\w+)*\.write\w*"
)

UNTELLING = {"util", "utils", "common", "helpers", "misc", "base", "manager", "data"}
# Import paths of torch.utils.benchmark, kept for its users' scripts.
KEPT_FOR_COMPATIBILITY = {"utils", "utils/common.py"}


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def room(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            # `from torchmark.measure import blocks` names a module; `from torchmark import Timer` names the package.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_portable(path: Path) -> bool:
    return any((SOURCE / part) in (path, *path.parents) for part in PORTABLE)


def test_every_folder_has_a_row_in_the_table() -> None:
    assert {room(path) for path in FILES} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_stay_within_the_table(path: Path) -> None:
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "torchmark":
            target = parts[1] if parts[1] in MAY_IMPORT else "__init__"
            assert target in MAY_IMPORT[room(path)] | {room(path)}, f"{name} is not for {room(path)}"
            if target in ENTRANCES and target != room(path):
                assert {name, name.rpartition(".")[0]} & ENTRANCES[target], f"{name} is not for {room(path)}"
        elif parts[0] not in sys.stdlib_module_names:
            relative = path.relative_to(SOURCE)
            allowed = THIRD_PARTY.get(parts[0], set())
            assert any(relative.match(pattern) for pattern in allowed), f"{parts[0]} is not for {relative}"


def list_calls(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_text_is_printed_through_one_function(path: Path) -> None:
    relative = str(path.relative_to(SOURCE))
    if relative in MAY_PRINT or room(path) in PRINTS_TO_PARENT:
        return
    names = (*list_calls(path), *(name for name in imports(path) if name.startswith("click.")))
    direct = {name for name in names if PRINTING.fullmatch(name)}
    assert not direct, f"{relative}: use torchmark.cli.output.echo instead of {direct}"


@pytest.mark.parametrize("call", ["print", "click.echo", "click.secho", "sys.stderr.write", "sys.stdout.buffer.write"])
def test_direct_printing_is_recognised(call: str) -> None:
    assert PRINTING.fullmatch(call)


def test_there_are_no_import_cycles() -> None:
    modules = {path: ".".join(("torchmark", *path.relative_to(SOURCE).with_suffix("").parts)) for path in FILES}
    by_name = {name: path for path, name in modules.items()}
    graph = {
        path: {by_name[m] for name in imports(path) for m in (name, name.rpartition(".")[0]) if m in by_name} - {path}
        for path in FILES
        if path.name != "__init__.py"
    }
    done: set[Path] = set()
    while ready := {path for path, needs in graph.items() if path not in done and needs <= done}:
        done |= ready
    assert set(graph) == done, f"in a cycle: {sorted(modules[p] for p in set(graph) - done)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_names_say_what_lives_there(path: Path) -> None:
    relative = str(path.relative_to(SOURCE))
    if relative not in KEPT_FOR_COMPATIBILITY:
        assert path.stem not in UNTELLING
    assert path.stem.startswith("__") or path.stem not in sys.stdlib_module_names


def test_folders_say_what_lives_there() -> None:
    assert {folder.name for folder in FOLDERS} & UNTELLING <= KEPT_FOR_COMPATIBILITY


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_folder_init_files_are_empty(folder: Path) -> None:
    if folder.name not in KEPT_FOR_COMPATIBILITY:
        assert (folder / "__init__.py").read_text() == ""


@pytest.mark.parametrize("path", [p for p in FILES if p.read_text()], ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_module_opens_with_what_lives_there(path: Path) -> None:
    text = ast.get_docstring(parse(path))
    assert text
    assert len(text.splitlines()) <= 10


@pytest.mark.parametrize("path", [p for p in FILES if is_portable(p)], ids=lambda p: str(p.relative_to(SOURCE)))
def test_portable_modules_are_python_3_9_and_need_nothing_but_torch(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    newer = {"strict", "slots", "kw_only"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            assert not newer & {keyword.arg for keyword in node.keywords}
    for name in imports(path):
        first = name.split(".")[0]
        if first == "torchmark":
            files = [SOURCE.joinpath(*m.split(".")[1:]).with_suffix(".py") for m in (name, name.rpartition(".")[0])]
            assert any(file.exists() and is_portable(file) for file in files), f"{name} is not portable"
        else:
            assert first == "torch" or first in sys.stdlib_module_names


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("torchmark", {"torch", "numpy", "click", "rich", "jinja2", "typing", "dataclasses"}),
        ("torchmark.cli.main", {"torch", "numpy", "click", "rich", "jinja2", "typing", "dataclasses"}),
        ("torchmark.cli.commands.cmd_time", {"torch", "numpy", "jinja2"}),
        ("torchmark.cli.commands.cmd_count", {"torch", "numpy", "jinja2"}),
        ("torchmark.cli.commands.cmd_list", {"torch", "numpy", "jinja2", "rich"}),
        ("torchmark.cli.commands.cmd_run", {"torch", "numpy", "scipy", "jinja2", "ray"}),
        ("torchmark.cli.commands.cmd_ab", {"torch", "numpy", "scipy", "jinja2", "ray"}),
        ("torchmark.cli.commands.cmd_fuzz", {"torch", "numpy", "jinja2", "ray"}),
        ("torchmark.runner.cluster.backend", {"torch", "numpy", "jinja2", "ray"}),
        ("torchmark.cli.commands.cmd_overrides", {"torch", "numpy", "scipy", "jinja2"}),
        ("torchmark.cli.commands.cmd_flame", {"torch", "numpy", "jinja2"}),
        ("torchmark.suites.overrides", {"torch", "torchmark.define", "dataclasses"}),
        ("torchmark.cli.commands.cmd_show", {"torch", "numpy", "jinja2"}),
        ("torchmark.cli.startup", {"torch", "numpy", "click", "rich", "jinja2", "typing", "dataclasses"}),
        ("torchmark.cli.commands.cmd_runs", {"torch", "numpy", "jinja2", "rich"}),
        ("torchmark.cli.commands.cmd_export", {"torch", "numpy", "jinja2", "rich"}),
        ("torchmark.cli.commands.cmd_doctor", {"torch", "numpy", "jinja2"}),
        ("torchmark.api.compare", {"torch", "numpy", "jinja2"}),
    ],
)
def test_importing_loads_no_more_than_it_needs(module: str, absent: set[str]) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not absent & set(done.stdout.split())


def test_the_projects_files_speak_of_the_project_alone() -> None:
    root = SOURCE.parents[1]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if name == "tests/test_architecture.py" or not (root / name).is_file():
            continue
        text = (root / name).read_text(errors="replace").lower()
        for word in ("../shared", "defects.md", "reference.md", "measuring.md", "guide.md", "/work/"):
            assert word not in text, f"{name} mentions {word}"
