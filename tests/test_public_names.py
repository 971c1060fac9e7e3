"""The public surface: what `import torchmark` offers is what is documented, and it is all there."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch.utils.benchmark as reference

import torchmark

ROOT = Path(__file__).parents[1]

SHARED = [
    "CallgrindStats", "Colorize", "Compare", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "Language",
    "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip


def test_all_names_are_documented_in_the_readme_and_no_others() -> None:
    section = (ROOT / "README.md").read_text().partition("## Names")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert documented == set(torchmark.__all__) - {"__version__"}


@pytest.mark.parametrize("name", torchmark.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(torchmark, name) is not None


@pytest.mark.parametrize("name", [n for n in torchmark.__all__ if n != "__version__"])
def test_every_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(torchmark, name))


def list_methods(cls: type) -> list[str]:
    """What a class adds for its users: methods and properties whose names are public."""
    own = [name for base in cls.__mro__ if base.__module__.startswith("torchmark") for name in vars(base)]
    return [
        name for name in own if not name.startswith("_") and (callable(getattr(cls, name)) or is_property(cls, name))
    ]


def is_property(cls: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(cls, name), property)


@pytest.mark.parametrize("name", [n for n in torchmark.__all__ if inspect.isclass(getattr(torchmark, n))])
def test_every_method_of_a_public_class_has_a_docstring(name: str) -> None:
    cls = getattr(torchmark, name)
    assert [method for method in list_methods(cls) if not inspect.getdoc(getattr(cls, method))] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Tiemr'"):
        torchmark.Tiemr  # noqa: B018


def test_nothing_else_leaks_out() -> None:
    assert dir(torchmark) == sorted(torchmark.__all__)


def test_type_checkers_see_what_the_interpreter_does(tmp_path: Path) -> None:
    file = tmp_path / "names.py"
    file.write_text("".join(f"from torchmark import {name}\nreveal_type({name})\n" for name in torchmark.__all__))
    # torch takes mypy ten seconds. Left out, all that comes from there is Any, and would be found below.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    options = ["--strict", "--config-file", str(config), "--cache-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
    revealed = done.stdout.count("Revealed type")
    assert revealed == len(torchmark.__all__)
    assert '"Any"' not in done.stdout


def arguments(function: Any) -> list[tuple[str, object]]:
    """Names and defaults of the arguments that can be given by position, and of those that cannot."""
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", ["timeit", "blocked_autorange", "adaptive_autorange", "collect_callgrind"])
def test_methods_take_what_the_references_do_in_the_same_order(name: str) -> None:
    theirs = arguments(getattr(reference.Timer, name))
    assert arguments(getattr(torchmark.Timer, name))[: len(theirs)] == theirs


def test_the_timers_constructor_takes_what_the_references_does_in_the_same_order() -> None:
    def comparable(cls: Any) -> list[tuple[str, object]]:
        # Each has a clock and an enum of its own.
        return [(n, getattr(d, "name", d) if n != "timer" else callable(d)) for n, d in arguments(cls.__init__)]

    theirs = comparable(reference.Timer)
    assert comparable(torchmark.Timer)[: len(theirs)] == theirs


@pytest.mark.parametrize("name", ["TaskSpec", "Measurement", "FunctionCounts", "CallgrindStats"])
def test_fields_come_in_the_references_order_with_its_defaults(name: str) -> None:
    def fields(cls: Any) -> list[tuple[str, object]]:
        return [(f.name, f.default) for f in dataclasses.fields(cls)]

    theirs = [(n, None if d is None else d) for n, d in fields(getattr(reference, name))]
    ours = fields(getattr(torchmark, name))[: len(theirs)]
    assert [n for n, _ in ours] == [n for n, _ in theirs]
    assert [repr(d) for _, d in ours] == [repr(d) for _, d in theirs]


@pytest.mark.parametrize(
    "name", ["ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english"]
)
def test_functions_name_their_arguments_as_the_references_do(name: str) -> None:
    assert arguments(getattr(torchmark, name)) == arguments(getattr(reference, name))


@pytest.mark.parametrize("name", SHARED)
def test_the_references_import_paths_work(name: str) -> None:
    for module in ("common", "timer", "compare", "valgrind_wrapper.timer_interface"):
        theirs, ours = (operator.attrgetter(module)(package.utils) for package in (reference, torchmark))
        if name in theirs.__all__:
            assert getattr(ours, name) is getattr(torchmark, name)
            return
    raise AssertionError(f"{name} is nowhere in the reference")


def test_enums_have_the_references_members() -> None:
    for name in ("Language", "Colorize"):
        ours, theirs = getattr(torchmark, name), getattr(reference, name)
        assert {m.name: m.value for m in ours} == {m.name: m.value for m in theirs}
