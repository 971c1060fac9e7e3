"""Where memory lies: commands that decide it, and maps that tell."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.errors import SetupError, UsageError
from torchmark.runner.spec import (
    ADDR_NO_RANDOMIZE,
    HASH_SEED,
    HIDDEN,
    PADDING,
    Layout,
    Map,
    Mapped,
    Match,
    WorkerSpec,
    choose_variables,
    even_out,
    find_interpreter,
    layout_command,
    match_maps,
    other_worker,
    own_worker,
    read_map,
    select_telling,
    visible_path,
)

LIBC, TORCH = Mapped(0x7000, 0x1000, "libc.so.6"), Mapped(0x9000, 0x4000, "libtorch.so")
SHOW = """
import re, resource
text = open('/proc/self/maps').read()
low = re.search(r'^(\\w+)-\\w+ r-xp .*libc[.-]', text, re.M).group(1)
print(low, int(open('/proc/self/personality').read(), 16), resource.getrlimit(resource.RLIMIT_STACK)[0], hash('a'))
"""


def run_in(layout: Layout) -> list[str]:
    variables = {**os.environ, **layout.variables}
    command = [*layout_command(layout, sys.executable), "-c", SHOW]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.split()


def test_a_layout_is_the_same_each_time_and_another_than_the_next() -> None:
    first, again, second = (run_in(Layout(number)) for number in (0, 0, 1))
    assert first == again
    assert int(first[1]) & ADDR_NO_RANDOMIZE
    assert int(first[2]) == Layout(0).stack_bytes
    assert first[0] != second[0]
    assert first[3] != second[3]


def test_every_layout_has_a_seed_and_a_stack_of_its_own() -> None:
    layouts = [Layout(number) for number in range(24)]
    assert (
        len({layout.stack_bytes for layout in layouts})
        == len({layout.variables[HASH_SEED] for layout in layouts})
        == 24
    )
    # Seed 0 would switch hashing's randomness off, which is a layout as well, but not one that is like the others.
    assert all(int(layout.variables[HASH_SEED]) > 0 for layout in layouts)
    assert all(layout.stack_bytes % 4096 == 0 for layout in layouts)


@given(st.text(min_size=1), st.text(min_size=1))
def test_padding_makes_both_as_long(base: str, head: str) -> None:
    base, head = (text.encode(errors="replace").decode() for text in (base, head))
    pads = even_out(base, head)
    totals = [2 * len(os.fsencode(path)) + pad for path, pad in zip((base, head), pads, strict=True)]
    assert totals[0] == totals[1]
    assert min(pads) == 0
    assert Layout(0, pads[0]).variables[PADDING] == "x" * pads[0]


def test_maps_that_agree_match_whatever_the_files_are_called() -> None:
    other = Map(True, frozenset({LIBC, TORCH._replace(name="libtorch_copy.so")}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), other) == Match(alike=True)


def test_a_library_of_another_size_is_named() -> None:
    head = Map(True, frozenset({LIBC, TORCH._replace(size=0x5000)}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), head) == Match(alike=False, libraries=("libtorch.so",))


def test_where_the_same_libraries_lie_elsewhere_those_that_one_side_lacks_are_named() -> None:
    head = Map(True, frozenset({LIBC._replace(start=0x1), TORCH, Mapped(1, 2, "extra.so")}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), head) == Match(alike=False, libraries=("extra.so",))


@pytest.mark.parametrize("side", [None, Map(False, frozenset())])
def test_a_system_that_draws_addresses_or_does_not_tell_is_to_blame(side: Map | None) -> None:
    assert match_maps(side, Map(True, frozenset())) == Match(alike=False, refused=True)


def test_a_map_is_read_from_what_the_system_writes(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "personality").write_text("00040000\n")
    (folder / "maps").write_text(
        "7000-8000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n"
        "8000-9000 r--p 00001000 08:01 7 /usr/lib/libc.so.6\n"
        "9000-d000 r-xp 00000000 08:01 9 /odd name/libtorch.so\n"
        "e000-f000 rw-p 00000000 00:00 0 [heap]\n"
        "f000-ff00 r-xp 00000000 00:00 0 [vdso]\n"
    )
    assert read_map(7, tmp_path) == Map(True, frozenset({LIBC, TORCH}))


def test_a_process_that_is_gone_has_no_map(tmp_path: Path) -> None:
    assert read_map(7, tmp_path) is None


def test_a_script_in_between_is_seen_through(tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    assert find_interpreter(str(shim), {"PATH": "/bin"}) == sys.executable


def test_a_relative_path_is_seen_from_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert os.path.samefile(find_interpreter("./python", {"PATH": "/bin"}), sys.executable)


NAME_ANOTHER = "Name a Python 3.9 or newer that has torch."


def test_a_program_that_is_not_a_python_is_a_usage_error_and_a_setup_error(tmp_path: Path) -> None:
    other = tmp_path / "python"
    with pytest.raises(UsageError) as missing:
        find_interpreter(str(other), {"PATH": "/bin"})
    assert str(missing.value) == f"{other} is not a Python interpreter: there is no such program. {NAME_ANOTHER}"
    assert missing.value.exit_code == 2
    other.write_text("#!/bin/sh\necho I am a teapot. >&2; exit 1\n")
    with pytest.raises(SetupError, match=r"it is not a file that can be run. Name"):
        find_interpreter(str(other), {"PATH": "/bin"})
    other.chmod(0o755)
    with pytest.raises(SetupError) as failing:
        find_interpreter(str(other), {"PATH": "/bin"})
    assert str(failing.value) == f"{other} is not a Python interpreter: I am a teapot. {NAME_ANOTHER}"


def test_workers_of_a_kind_are_the_same_whatever_the_path_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    one = own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2"})
    monkeypatch.syspath_prepend("/somewhere/else")
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2", "EDITOR": "vi"}) == one
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "3"}) != one
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2"}, counting=False) != one
    assert other_worker(sys.executable, {"PATH": "/bin", "OMP_NUM_THREADS": "2"}, {}) != one


def test_another_interpreter_gets_no_path_of_ours() -> None:
    assert other_worker("/usr/bin/python3", {}, {"A": "1"}) == WorkerSpec(
        "/usr/bin/python3",
        (("A", "1"), ("OMP_WAIT_POLICY", "passive"), ("OPENBLAS_NUM_THREADS", "1"), ("PYTHONHASHSEED", "0")),
    )


def test_the_visible_path_holds_in_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "relative", "/absolute", b"/bytes", None, 7])
    assert visible_path() == [str(tmp_path), str(tmp_path / "relative"), "/absolute", "/bytes"]


def test_a_worker_is_told_where_torch_is_only_if_it_is_nowhere_where_things_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file of the program").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert own_worker({}).sys_path is None
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert own_worker({}).sys_path == tuple(visible_path())


def test_a_program_without_a_python_of_its_own_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(SetupError, match="does not know its own Python"):
        own_worker({})


PARENT = {
    "PATH": "/bin",
    "HOME": "/root",
    "LC_ALL": "C",
    "EDITOR": "vi",
    "PYTHONPATH": "/mine",
    "PYTHONHASHSEED": "7",
    "VIRTUAL_ENV": "/venv",
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "8",
    "ATEN_CPU_CAPABILITY": "default",
    "TORCHINDUCTOR_CACHE_DIR": "/cache",
    "TORCHMARK_CACHE": "/ours",
    "LD_LIBRARY_PATH": "/lib",
}


def test_only_what_torch_needs_is_handed_on() -> None:
    chosen = choose_variables(PARENT, {}, own=False)
    assert chosen == {
        "PATH": "/bin",
        "HOME": "/root",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "2",
        "ATEN_CPU_CAPABILITY": "default",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
    }


def test_the_own_interpreter_finds_its_libraries() -> None:
    assert choose_variables(PARENT, {}, own=True)["LD_LIBRARY_PATH"] == "/lib"


def test_the_users_word_is_the_last() -> None:
    given = {"PYTHONHASHSEED": "3", "OPENBLAS_NUM_THREADS": "2", "EDITOR": "emacs"}
    assert choose_variables(PARENT, given, own=False).items() >= given.items()
    assert choose_variables({"OMP_WAIT_POLICY": "active"}, {}, own=False)["OMP_WAIT_POLICY"] == "active"


def test_a_larger_environment_changes_nothing() -> None:
    assert choose_variables({**PARENT, "PADDING": "x" * 3000}, {}, own=True) == choose_variables(PARENT, {}, own=True)


def test_what_may_change_torch_is_recorded() -> None:
    chosen = choose_variables(PARENT, {"EDITOR": "emacs"}, own=False)
    recorded = dict(select_telling(chosen, ["EDITOR"]))
    assert list(recorded) == sorted(recorded)
    assert recorded["ATEN_CPU_CAPABILITY"] == "default"
    assert recorded["EDITOR"] == "emacs"
    assert not {"HOME", "PATH", "LC_ALL"} & recorded.keys()


SECRETS = (
    "TORCH_HUB_TOKEN",
    "TORCHELASTIC_SECRET",
    "PYTORCH_API_KEY",
    "PYTORCH_ACCESS_KEY_ID",
    "CUDA_REGISTRY_PASSWORD",
    "CUDA_REGISTRY_PASSWD",
    "TORCH_CREDENTIALS",
    "TORCH_AUTH",
    "TORCH_AUTHORIZATION",
    "torch_auth_header",
    "TORCHAPIKEY",
    "PYTORCH_PAT",
)


@pytest.mark.parametrize("name", SECRETS)
def test_values_of_secrets_are_not_recorded_whoever_gave_them(name: str) -> None:
    for names in ([], [name]):
        recorded = dict(select_telling(choose_variables({name: "hunter2"}, {}, own=True), names))
        assert recorded.get(name, HIDDEN) == HIDDEN
        assert "hunter2" not in str(recorded)
    recorded = dict(select_telling({name: "hunter2"}, [name]))
    assert recorded == {name: HIDDEN}


@pytest.mark.parametrize(
    "name",
    ["TORCH_LOGS", "TORCH_KEYWORDS", "TORCH_TOKENIZERS", "OMP_NUM_THREADS", "TORCH_AUTHOR", "TORCH_BYPASS", "MKL_CBWR"],
)
def test_all_others_are_recorded_so_that_a_change_is_noticed(name: str) -> None:
    assert select_telling({name: "1"}, [name]) == ((name, "1"),)


def test_a_login_in_an_address_is_hidden_and_the_address_is_not() -> None:
    recorded = select_telling({"TORCH_CACHE_URL": "redis://me:hunter2@host:1/x", "TORCH_HOME": "/a@b/c"}, [])
    assert recorded == (("TORCH_CACHE_URL", f"redis://{HIDDEN}@host:1/x"), ("TORCH_HOME", "/a@b/c"))


def test_a_worker_still_gets_the_value_of_a_secret() -> None:
    assert choose_variables({"TORCH_HUB_TOKEN": "hunter2"}, {}, own=False)["TORCH_HUB_TOKEN"] == "hunter2"
