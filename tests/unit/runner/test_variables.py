from __future__ import annotations

import pytest

from torchmark.runner.spec import HIDDEN, choose_variables, select_telling

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
    for given in ([], [name]):
        recorded = dict(select_telling(choose_variables({name: "hunter2"}, {}, own=True), given))
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
