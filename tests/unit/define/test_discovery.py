from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from torchmark.define import discovery
from torchmark.define.discovery import discover, list_suites
from torchmark.define.groups import GroupedStmts
from torchmark.errors import UsageError
from torchmark.model.plan import Fault

HEADER = """\
from torchmark import GroupedModules, GroupedSetup, GroupedStmts, GroupedVariants
from torchmark import TimerArgs
from torchmark import flatten
from torchmark import parse_stmts
"""
GOOD = f'{HEADER}BENCHMARKS = {{"good": GroupedStmts("x", "x;")}}\n'
# Faults of every kind, between good ones; the number of each line is in its label where the line can be told.
MANY_FAULTS = f"""{HEADER}BENCHMARKS = {{
    "first": GroupedStmts("x"),
    "7 signature": GroupedStmts("x", signature="f(a b) -> y"),
    "8 columns": GroupedVariants(*parse_stmts("Python | Cpp")),
    "9 columns": {{"of": GroupedStmts(*parse_stmts("Python | Cpp"))}},
    "10 setup": GroupedStmts("x", setup=GroupedSetup(None)),
    "11 model": GroupedModules("relu = 1", signature="f(x) -> y"),
    "12 threads": GroupedStmts("x", num_threads=None),
    "13 python": GroupedStmts(
        "x ="
    ),
    "tuple": (GroupedStmts("x"),),
    "first ": TimerArgs("x"),
    ("twice",): TimerArgs("x"),
    "twice": {{None: TimerArgs("y")}},
    "types": TimerArgs("x", num_threads="1"),
    "21 text": TimerArgs(parse_stmts("Python | Cpp")[0]),
    3: TimerArgs("x"),
    "variants": GroupedVariants("# @a\\nx\\n# @b\\ny"),
    "last": {{"of all": TimerArgs("x")}},
}}
"""


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return str(path)


def only_fault(*names: str) -> Fault:
    found = discover(names)
    assert found.cases == ()
    (fault,) = found.faults
    return fault


def test_a_good_file_has_cases_and_no_faults(tmp_path: Path) -> None:
    file = write(tmp_path / "any_name.py", GOOD)
    found = discover([file])
    assert [(case.label, case.args.stmt, case.suite, case.check) for case in found.cases] == [
        (("good",), "x", file, None),
        (("good",), "x;", file, None),
    ]
    assert found.faults == ()


def test_faults_hide_nothing_and_are_all_told(tmp_path: Path) -> None:
    file = write(tmp_path / "bench.py", MANY_FAULTS)
    found = discover([file])
    assert [case.label for case in found.cases] == [
        ("first",),
        ("first ",),
        ("twice",),
        ("variants", "a"),
        ("variants", "b"),
        ("last", "of all"),
    ]
    faults = {fault.label: fault for fault in found.faults}
    assert len(faults) == len(found.faults) == 12
    assert {fault.file for fault in found.faults} == {file}
    for label, message in {
        ("7 signature",): "Invalid signature: `f(a b) -> y`: expected `,` or `)`, found `b`.\n  f(a b) -> y\n      ^",
        ("8 columns",): "Invalid string:",
        ("9 columns", "of"): "Invalid string:",
        ("10 setup",): "`py_setup` is a text, not <class 'NoneType'>.",
        ("11 model",): "`py_model_setup` appears to be missing `model` definition.",
        ("12 threads",): "`num_threads` is a whole number",
        ("13 python",): "`py_stmt` is not Python: invalid syntax.\n  x =\n     ^",
        ("tuple",): "A comma behind a group makes a tuple of it.",
        ("twice",): "duplicate key: ('twice',)",
        ("types",): "`num_threads` of TimerArgs is a whole number from 1 on, not '1'.",
        ("21 text",): "Invalid string:",
        (): "A label is a text, a tuple of texts, or None, not 3.",
    }.items():
        assert message in faults[label].message
        number = label[0].split()[0] if label else ""
        assert faults[label].line == (int(number) if number.isdigit() else None)


def test_a_fault_is_told_even_if_its_place_is_lost(tmp_path: Path) -> None:
    text = f"""{HEADER}BENCHMARKS = {{
    **GroupedVariants("x ="),
    **GroupedVariants("y ="),
    "stripped": TimerArgs(parse_stmts("Python | Cpp")[0].strip()),
}}
unused = GroupedStmts("x", setup=GroupedSetup(3))
1 / 0
"""
    found = discover([write(tmp_path / "bench.py", text)])
    assert [fault.line for fault in found.faults] == [11, 6, 7, 8, 10]
    found = discover([write(tmp_path / "bench.py", text.replace("1 / 0\n", ""))])
    assert [fault.line for fault in found.faults] == [7, 6, 8, 10]
    assert [case.label for case in found.cases] == [("stripped",)]


def test_definitions_may_be_flattened_already(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", MANY_FAULTS.replace("BENCHMARKS = {", "BENCHMARKS = flatten({").rstrip() + ")\n")
    plain = write(tmp_path / "b.py", MANY_FAULTS)
    one, two = discover([file]), discover([plain])
    assert [case.key for case in one.cases] == [case.key for case in two.cases]
    assert {(fault.label, fault.message) for fault in one.faults} == {
        (fault.label, fault.message) for fault in two.faults
    }


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\ny = = 2\n", "It is not Python: invalid syntax.\n  y = = 2\n      ^", 2),
        (
            "def f():\nx",
            "It is not Python: expected an indented block after function definition on line 1.\n  x\n  ^",
            2,
        ),
        ("# coding: klingon\n", "It is not Python: ", None),
        ("\n\nimport no_such_module_of_mine\n", "No module named 'no_such_module_of_mine'", 3),
        ("def f():\n    1 / 0\nf()\n", "It does not load: ZeroDivisionError: division by zero", 2),
        ("import sys\nsys.exit(3)\n", "It does not load: SystemExit: 3", 2),
        ("x = 1\n", "There is no BENCHMARKS.", None),
        ("", "There is no BENCHMARKS.", None),
        ("BENCHMARKS = []", "<class 'list'> is not a dictionary: BENCHMARKS.", None),
        ("BENCHMARKS = {}\nBENCHMARKS['a'] = BENCHMARKS", "It does not load: RecursionError", None),
        ("import ast\nast.parse('\\n\\n\\nx = = 1')", "SyntaxError: invalid syntax", 2),
        (f"{HEADER}flatten(3)", "A definition is a dictionary of labels and benchmarks, not <class 'int'>.", 5),
        (f"{HEADER}GroupedStmts('x', num_threads=0).py_fwd_stmt", "`num_threads` is a whole number from 1 on", 5),
    ],
)
def test_a_file_that_does_not_load_is_one_fault_among_good_files(
    text: str, message: str, line: int | None, tmp_path: Path
) -> None:
    good, bad = write(tmp_path / "good.py", GOOD), tmp_path / "bad.py"
    bad.write_text(text)
    found = discover([str(bad), good])
    (fault,) = found.faults
    assert (fault.file, fault.label) == (str(bad), ())
    assert message in fault.message
    assert line is None or fault.line == line
    assert fault.advice
    assert {case.suite for case in found.cases} == {good}


def test_bytes_that_are_no_text_are_a_fault(tmp_path: Path) -> None:
    for content in (b"\xff\xfe", b"x = 1\0"):
        (tmp_path / "bad.py").write_bytes(content)
        assert "It " in only_fault(str(tmp_path / "bad.py")).message


def test_an_error_in_an_imported_file_is_not_shown_at_the_line_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path / "sibling_with_error.py", "\n\n\n\nx = = 1\n")
    fault = only_fault(write(tmp_path / "bench_a.py", "x = 1\nimport sibling_with_error\nBENCHMARKS = {}"))
    assert "sibling_with_error.py" in fault.message
    assert fault.line == 2


def test_a_group_made_elsewhere_is_told_at_the_line_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path / "makes_groups.py", f"{HEADER}\n\n\ndef make():\n    return GroupedStmts('x', num_threads=0)\n")
    text = "import makes_groups\nBENCHMARKS = {\n    'a': makes_groups.make(),\n}"
    fault = only_fault(write(tmp_path / "bench_a.py", text))
    assert (fault.line, fault.label) == (3, ("a",))


def test_files_find_what_lies_beside_them_and_not_what_lies_beside_others(tmp_path: Path) -> None:
    text = "from my_shapes import NAME\nfrom my_package.inner import OTHER\n" + HEADER
    text += "BENCHMARKS = {NAME: TimerArgs(OTHER)}\n"
    for folder in ("one", "two"):
        write(tmp_path / folder / "my_shapes.py", f"NAME = 'label of {folder}'")
        write(tmp_path / folder / "my_package" / "__init__.py", "")
        write(tmp_path / folder / "my_package" / "inner.py", f"OTHER = '{folder}'")
        write(tmp_path / folder / "bench_a.py", text)
    paths = list(sys.path)
    found = discover([str(tmp_path)])
    assert found.faults == ()
    assert [(case.label, case.args.stmt) for case in found.cases] == [
        (("label of one",), "one"),
        (("label of two",), "two"),
    ]
    assert sys.path == paths
    assert not {"my_shapes", "my_package", "my_package.inner"} & set(sys.modules)


def test_a_file_may_change_where_modules_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = write(tmp_path / "a.py", f"import sys\nsys.path.pop(0)\nsys.path.append('/mine')\n{GOOD}")
    assert len(discover([file]).cases) == 2
    assert "/mine" in sys.path


def test_a_file_is_run_as_a_program_would_be(tmp_path: Path) -> None:
    text = f"""from __future__ import annotations
{HEADER}
import dataclasses, os
@dataclasses.dataclass
class Shape:
    n: int
    name: "str | None" = None
assert __name__ != "__main__"
BENCHMARKS = {{os.path.basename(__file__): TimerArgs(str(Shape(3).n))}}
CHECK = True
"""
    (case,) = discover([write(tmp_path / "a.py", text)]).cases
    assert (case.label, case.args.stmt) == (("a.py",), "3")


def test_a_suite_may_ask_for_checks(tmp_path: Path) -> None:
    text = f"{HEADER}CHECK = True\nBENCHMARKS = {{}}\n"
    text += 'BENCHMARKS["a"] = GroupedStmts("y = x", signature="f(x) -> y")\n'
    text += 'BENCHMARKS["b"] = GroupedStmts("y = x", signature="f(x) -> y", check=False)\n'
    assert [bool(case.check) for case in discover([write(tmp_path / "a.py", text)]).cases] == [True, False]


def test_folders_are_searched_for_files_of_benchmarks(tmp_path: Path) -> None:
    for name in ("bench_b.py", "bench_a.py", "deep/er/bench_c.py", ".hidden/bench_d.py", "deep/.git/bench_e.py"):
        write(tmp_path / name, GOOD)
    write(tmp_path / "other.py", "raise SystemExit")
    write(tmp_path / "bench_folder.py" / "other.py", "raise SystemExit")
    found = discover([str(tmp_path)])
    assert found.faults == ()
    suites = list(dict.fromkeys(Path(case.suite).relative_to(tmp_path).as_posix() for case in found.cases))
    assert suites == ["bench_a.py", "bench_b.py", "deep/er/bench_c.py"]


def test_a_hidden_folder_is_searched_if_it_is_named(tmp_path: Path) -> None:
    write(tmp_path / ".hidden" / "bench_a.py", GOOD)
    assert len(discover([str(tmp_path / ".hidden")]).cases) == 2


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "bench_a.py", GOOD)
    (tmp_path / "link.py").symlink_to(file)
    monkeypatch.chdir(tmp_path)
    found = discover(["bench_a.py", file, "./bench_a.py", str(tmp_path), "link.py"])
    assert [case.suite for case in found.cases] == ["bench_a.py"] * 2


def test_a_folder_without_benchmarks_is_no_use(tmp_path: Path) -> None:
    write(tmp_path / "other.py", GOOD)
    with pytest.raises(UsageError, match=r"There is no bench_\*\.py in the folder"):
        discover([str(tmp_path)])


def test_the_suite_that_was_meant_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "list_suites", lambda: ("standard", "other"))
    with pytest.raises(UsageError) as caught:
        discover(["standrad"])
    assert str(caught.value) == (
        "'standrad' is neither a suite nor a file or folder. Did you mean standard?\nThe suites are standard, other."
    )
    with pytest.raises(UsageError, match="file or folder\\.\nThe suites"):
        discover(["no/such/file.py"])
    with pytest.raises(UsageError, match="An empty name"):
        discover([""])


def test_nothing_is_run_if_one_name_is_unknown(tmp_path: Path) -> None:
    file = write(tmp_path / "a.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(UsageError):
        discover([file, "no/such/file.py"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", list_suites())
def test_suites_that_come_along_are_free_of_faults(name: str) -> None:
    found = discover([name, name])
    assert found.faults == ()
    assert len({case.key for case in found.cases}) == len(found.cases) > 0
    assert {case.suite for case in found.cases} == {name}


def test_a_misspelt_option_costs_its_own_group(tmp_path: Path) -> None:
    file = write(
        tmp_path / "bench.py",
        "from torchmark import GroupedStmts\n"
        'BENCHMARKS = {"bad": GroupedStmts("x", num_thread=2), "good": GroupedStmts("x")}',
    )
    found = discover([file])
    assert [case.label for case in found.cases] == [("good",)]
    (fault,) = found.faults
    assert (fault.label, fault.line) == (("bad",), 2)
    assert "unexpected keyword argument 'num_thread'" in fault.message


def test_a_misspelt_option_outside_a_suite_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="num_thread"):
        GroupedStmts("x", num_thread=2)  # type: ignore[call-arg]


def test_a_bad_line_costs_its_own_variant(tmp_path: Path) -> None:
    block = "# @a\\nx = 1\\n# @b\\nfor i in x:\\n    i\\n# @c\\ny = 2"
    file = write(
        tmp_path / "bench.py",
        f'from torchmark import GroupedVariants\nBENCHMARKS = {{"v": GroupedVariants("{block}")}}',
    )
    found = discover([file])
    assert [case.label for case in found.cases] == [("v", "a"), ("v", "b", "Case:  1"), ("v", "c")]
    (fault,) = found.faults
    assert fault.label == ("v", "b", "Case:  0")
    assert fault.advice is not None
    assert fault.advice.startswith("Each line is a benchmark.")


def test_a_suite_that_goes_elsewhere_or_forks_or_raises_what_it_likes_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = 'from torchmark import TimerArgs\nBENCHMARKS = {"a": TimerArgs("1")}\n'
    write(tmp_path / "bench_1.py", f"import os\nos.chdir('/')\n{good}")
    write(tmp_path / "bench_2.py", f"import os\nos.fork()\n{good}")
    write(tmp_path / "bench_3.py", "class Own(BaseException): pass\nraise Own('mine')")
    write(tmp_path / "bench_4.py", good)
    found = discover(["."])
    assert [case.suite for case in found.cases] == ["bench_1.py", "bench_2.py", "bench_4.py"]
    (fault,) = found.faults
    assert (fault.file, fault.line) == ("bench_3.py", 2)
    assert Path.cwd() == tmp_path


def test_check_is_true_or_false(tmp_path: Path) -> None:
    fault = only_fault(write(tmp_path / "bench.py", 'CHECK = "no"\nBENCHMARKS = {}'))
    assert "CHECK is True or False, not 'no'" in fault.message


def test_a_package_can_be_a_suite() -> None:
    assert "overrides" in list_suites()
    found = discover(["overrides"])
    assert found.faults == ()
    assert {case.suite for case in found.cases} == {"overrides"}
