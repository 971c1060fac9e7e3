from __future__ import annotations

from torchmark.runner.variables import choose_variables, select_telling

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
