from __future__ import annotations

from pathlib import Path

from torchmark.runner.compile_cases import adapt_spec
from torchmark.runner.spec import own_worker, select_telling

FOLDER = Path("/graphs")


def test_a_worker_for_compiling_keeps_what_the_user_chose() -> None:
    environ = {"PATH": "/bin", "CXX": "clang++", "TORCHINDUCTOR_COMPILE_THREADS": "8", "EDITOR": "vi"}
    spec = adapt_spec(own_worker(environ, {"ATEN_CPU_CAPABILITY": "default"}), environ, FOLDER, {}, counting=False)
    variables = dict(spec.variables)
    assert spec.compiling
    assert not spec.counting
    assert variables["CXX"] == "clang++"
    assert variables["ATEN_CPU_CAPABILITY"] == "default"
    assert "EDITOR" not in variables
    # With more, it could not be forked.
    assert variables["TORCHINDUCTOR_COMPILE_THREADS"] == "1"


def test_counting_is_lowered_unless_the_user_asks_for_even_less() -> None:
    lowered = {"CXX": "/cache/g++", "ATEN_CPU_CAPABILITY": "avx2"}
    given = adapt_spec(
        own_worker({}, {"CXX": "g++", "ATEN_CPU_CAPABILITY": "default"}), {}, FOLDER, lowered, counting=True
    )
    assert dict(given.variables)["CXX"] == "/cache/g++"
    assert dict(given.variables)["ATEN_CPU_CAPABILITY"] == "default"
    plain = adapt_spec(own_worker({}), {}, FOLDER, lowered, counting=True)
    assert dict(plain.variables)["ATEN_CPU_CAPABILITY"] == "avx2"


def test_where_graphs_are_kept_is_not_part_of_a_result() -> None:
    spec = adapt_spec(own_worker({}), {}, FOLDER, {}, counting=False)
    assert dict(spec.variables)["TORCHINDUCTOR_CACHE_DIR"] == "/graphs"
    assert "TORCHINDUCTOR_CACHE_DIR" not in dict(select_telling(dict(spec.variables), spec.given))
