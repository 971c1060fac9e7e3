"""The rooms of the house: which folder may import which, and what else must stay true of all files."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    "files": {"errors", "processes"},
    "processes": {"errors"},
    "model": {"errors"},
    "stats": {"errors"},
    "measure": {"errors", "model", "stats"},
    "worker": {"errors", "model", "measure"},
    "callgrind": {"errors", "files", "model", "stats"},
    "native": {"errors", "files", "processes", "model"},
    "runner": {"errors", "files", "processes", "model", "worker", "native", "callgrind", "measure", "__init__"},
    "compare": {"errors", "files", "processes", "model", "stats", "callgrind", "native", "runner", "analysis", "store"},
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
    "files.py",  # one line, made printable there: the runner knows nothing of reports
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

MOST_MODULES = 250
MOST_MODULES_IN_A_FOLDER = 25
MOST_LINES_OF_A_COMMAND = 150
MOST_POSITIONAL = 4
# What measures, judges or writes the store. A command calls one function of `api` or `compare` that does.
NOT_FOR_COMMANDS = {
    *(f"torchmark.runner.{name}" for name in ("jobs", "lab", "link", "local", "paired_workers", "worker.Worker")),
    *(f"torchmark.analysis.verdict.{name}" for name in ("judge", "sequential", "visits")),
    *(f"torchmark.store.{name}" for name in ("database", "ledger.write_entry", "rows", "store_file")),
    "torchmark.compare.experiment",
    "torchmark.worker",
}


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def room(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: Path) -> Iterator[str]:
    return imported(parse(path))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
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


def is_for_files_alone(call: ast.Call) -> bool:
    """Whether a call renames or locks a file, makes a draft, or a folder with a mode."""
    name = ast.unparse(call.func)
    keywords = {keyword.arg for keyword in call.keywords}
    # Texts have a `replace` of two arguments, values one of keywords.
    is_of_path = name.endswith(".replace") and len(call.args) == 1 and not keywords
    return (
        is_of_path
        or name in {"os.replace", "os.rename", "os.makedirs", "fcntl.flock", "fcntl.lockf", "tempfile.mkstemp"}
        or name.endswith((".rename", "NamedTemporaryFile"))
        or (name.endswith("mkdir") and "mode" in keywords)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_put_in_place_and_locked_in_one_module(path: Path) -> None:
    # Processes that measure do not have `files.py`.
    if path == SOURCE / "files.py" or is_portable(path):
        return
    calls = (node for node in ast.walk(parse(path)) if isinstance(node, ast.Call))
    found = [ast.unparse(call) for call in calls if is_for_files_alone(call)]
    assert not found, f"use torchmark.files instead of {found}"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("os.replace(draft, path)", True),
        ("draft.replace(path)", True),
        ("folder.rename(gone)", True),
        ("fcntl.flock(file, fcntl.LOCK_EX)", True),
        ("tempfile.mkstemp(dir=folder)", True),
        ("folder.mkdir(mode=0o700)", True),
        ("text.replace(old, new)", False),
        ("dataclasses.replace(value, field=1)", False),
        ("folder.mkdir()", False),
    ],
)
def test_a_file_that_is_put_in_place_by_hand_is_found(call: str, expected: bool) -> None:
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    assert is_for_files_alone(tree) is expected


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
        ("torchmark.cli.commands.cmd_list", {"torch", "numpy", "jinja2", "rich", "torchmark.runner.worker"}),
        ("torchmark.cli.commands.cmd_run", {"torch", "numpy", "scipy", "jinja2", "ray"}),
        ("torchmark.cli.commands.cmd_ab", {"torch", "numpy", "scipy", "jinja2", "torchmark.runner.cluster"}),
        ("torchmark.api.ab", {"torch", "numpy", "scipy", "torchmark.runner.cluster"}),
        ("torchmark.compare.session", {"torchmark.compare.joint_timing", "torchmark.runner.cluster"}),
        ("torchmark.cli.commands.cmd_fuzz", {"torch", "numpy", "jinja2", "ray"}),
        ("torchmark.runner.cluster.backend", {"torch", "numpy", "jinja2", "ray"}),
        ("torchmark.cli.commands.cmd_overrides", {"torch", "numpy", "scipy", "jinja2"}),
        ("torchmark.cli.commands.cmd_flame", {"torch", "numpy", "jinja2"}),
        ("torchmark.suites.overrides", {"torch", "torchmark.define", "dataclasses"}),
        ("torchmark.cli.commands.cmd_show", {"torch", "numpy", "jinja2", "torchmark.runner.worker"}),
        ("torchmark.cli.startup", {"torch", "numpy", "click", "rich", "jinja2", "typing", "dataclasses"}),
        ("torchmark.cli.commands.cmd_runs", {"torch", "numpy", "jinja2", "rich", "torchmark.runner.worker"}),
        ("torchmark.cli.commands.cmd_compare", {"torch", "numpy", "jinja2", "torchmark.runner.worker"}),
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


def list_too_many(names: Collection[str], most: int) -> list[str]:
    return [f"{len(names)} modules, of {most}"] if len(names) > most else []


def list_full_folders(paths: Iterable[Path], most: int) -> list[str]:
    return [f"{folder}: {n} modules" for folder, n in Counter(path.parent for path in paths).items() if n > most]


def list_gerunds(paths: Iterable[Path]) -> list[str]:
    return [str(path) for path in paths if re.fullmatch(r"_*[a-z]+ing", path.stem)]


def list_doubled_classes(trees: Mapping[Path, ast.Module]) -> list[str]:
    homes = defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(str(path))
    return [f"{name}: {sorted(paths)}" for name, paths in homes.items() if len(paths) > 1]


def count_fields(trees: Mapping[Path, ast.Module]) -> dict[str, int]:
    """Our dataclasses, and how many fields each has of its own."""
    return {
        node.name: sum(isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.dump(part) for part in node.body)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(mark) for mark in node.decorator_list)
    }


def list_long_positional_calls(trees: Mapping[Path, ast.Module], most: int) -> list[str]:
    """A starred argument stands for all fields there are: nobody sees how many it fills."""
    ours = count_fields(trees)
    return [
        f"{path}:{node.lineno}: {node.func.id}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours
        if len(node.args) > most or (ours[node.func.id] > most and any(isinstance(a, ast.Starred) for a in node.args))
    ]


def list_long_commands(texts: Mapping[Path, str], most: int) -> list[str]:
    return [str(path) for path, text in texts.items() if len(text.splitlines()) > most]


def list_working_commands(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Commands that measure, judge or store by themselves."""
    return [
        f"{path}: {name}"
        for path, tree in trees.items()
        for name in imported(tree)
        if any(name == module or name.startswith(f"{module}.") for module in NOT_FOR_COMMANDS)
    ]


def of_commands(path: Path) -> bool:
    return path.parent == SOURCE / "cli" / "commands"


TREES = {path.relative_to(SOURCE): parse(path) for path in FILES}
COMMAND_TREES = {path.relative_to(SOURCE): parse(path) for path in FILES if of_commands(path)}
COMMAND_TEXTS = {path.relative_to(SOURCE): path.read_text() for path in FILES if of_commands(path)}


def test_there_are_not_too_many_modules() -> None:
    assert not list_too_many([str(path) for path in FILES], MOST_MODULES)


def test_no_folder_is_too_full() -> None:
    assert not list_full_folders(TREES, MOST_MODULES_IN_A_FOLDER)


def test_no_module_is_named_by_a_bare_gerund() -> None:
    assert not list_gerunds(TREES)


def test_no_class_name_is_in_two_modules() -> None:
    assert not list_doubled_classes(TREES)


def test_dataclasses_of_many_fields_are_built_with_keywords() -> None:
    assert not list_long_positional_calls(TREES, MOST_POSITIONAL)


def test_commands_fit_on_a_screen_or_two() -> None:
    assert COMMAND_TEXTS
    assert not list_long_commands(COMMAND_TEXTS, MOST_LINES_OF_A_COMMAND)


def list_doubled_options(trees: Mapping[Path, ast.Module]) -> list[str]:
    """Options that are declared alike in two places."""
    calls = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    texts = Counter(ast.unparse(call) for call in calls if ast.unparse(call.func) == "click.option")
    return [text for text, times in texts.items() if times > 1]


def test_every_option_is_declared_once() -> None:
    assert not list_doubled_options({path: tree for path, tree in TREES.items() if path.parts[0] == "cli"})


def test_commands_neither_measure_nor_judge_nor_store() -> None:
    assert not list_working_commands(COMMAND_TREES)


A_VALUE = (
    "@dataclasses.dataclass(frozen=True)\nclass Value:\n    a: int\n    b: int\n    c: int\n    d: int\n    e: int\n"
)


def plant(**sources: str) -> dict[Path, ast.Module]:
    return {Path(f"room/{name}.py"): ast.parse(source) for name, source in sources.items()}


@pytest.mark.parametrize(
    ("innocent", "offender"),
    [
        pytest.param(
            list_too_many([f"m{i}" for i in range(MOST_MODULES)], MOST_MODULES),
            list_too_many([f"m{i}" for i in range(MOST_MODULES + 1)], MOST_MODULES),
            id="too many modules",
        ),
        pytest.param(
            list_full_folders([Path(f"room/m{i}.py") for i in range(25)] + [Path("room/family/m.py")], 25),
            list_full_folders([Path(f"room/m{i}.py") for i in range(26)], 25),
            id="a full folder",
        ),
        pytest.param(
            list_gerunds([Path("room/timing_table.py"), Path("room/string_views.py"), Path("room/warm_up.py")]),
            list_gerunds([Path("room/timing.py")]),
            id="a gerund",
        ),
        pytest.param(
            list_gerunds([Path("room/__init__.py")]),
            list_gerunds([Path("room/_telling.py")]),
            id="a private gerund",
        ),
        pytest.param(
            list_doubled_classes(plant(one="class Entry: ...", two="class _Entry: ...")),
            list_doubled_classes(plant(one="class Entry: ...", two="def f():\n    class Entry: ...")),
            id="a class name twice",
        ),
        pytest.param(
            list_long_positional_calls(plant(one=A_VALUE, two="Value(1, 2, 3, 4, e=5); other(1, 2, 3, 4, 5)"), 4),
            list_long_positional_calls(plant(one=A_VALUE, two="Value(1, 2, 3, 4, 5)"), 4),
            id="five fields by position",
        ),
        pytest.param(
            list_long_positional_calls(plant(one=A_VALUE, two="Value(**fields)"), 4),
            list_long_positional_calls(plant(one=A_VALUE, two="Value(*fields)"), 4),
            id="fields that nobody sees",
        ),
        pytest.param(
            list_long_commands({Path("cmd_a.py"): "x\n" * 150}, 150),
            list_long_commands({Path("cmd_a.py"): "x\n" * 151}, 150),
            id="a long command",
        ),
        pytest.param(
            list_doubled_options(plant(cmd_a="click.option('-k')", cmd_b="click.option('-k', help='')")),
            list_doubled_options(plant(cmd_a="click.option('-k')", cmd_b="click.option('-k')")),
            id="an option twice",
        ),
        pytest.param(
            list_working_commands(plant(cmd_a="from torchmark.api.runs import RunTask, execute")),
            list_working_commands(plant(cmd_a="from torchmark.runner.lab import Lab")),
            id="a command that measures",
        ),
        pytest.param(
            list_working_commands(plant(cmd_a="from torchmark.analysis.verdict.stored import compare_stored")),
            list_working_commands(plant(cmd_a="from torchmark.analysis.verdict import judge")),
            id="a command that judges",
        ),
        pytest.param(
            list_working_commands(plant(cmd_a="from torchmark.store.runs import open_runs")),
            list_working_commands(plant(cmd_a="import torchmark.store.rows")),
            id="a command that stores",
        ),
    ],
)
def test_a_planted_offender_is_found(innocent: list[str], offender: list[str]) -> None:
    assert not innocent
    assert offender
