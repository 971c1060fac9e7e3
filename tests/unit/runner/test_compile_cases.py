from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchmark.errors import SetupError
from torchmark.runner.compile_cases import adapt_spec, knows_avx2, lower_variables, write_script
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


def make_root(path: Path, flags: str) -> Path:
    (path / "proc").mkdir(parents=True)
    (path / "proc/cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n")
    return path


def make_compiler(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    path.chmod(0o755)
    return path


def test_only_processors_with_avx2_have_something_to_hide(tmp_path: Path) -> None:
    assert knows_avx2(make_root(tmp_path / "new", "sse2 avx2 avx512f"), "x86_64")
    assert not knows_avx2(tmp_path / "new", "aarch64")
    assert not knows_avx2(make_root(tmp_path / "old", "sse2 avx"), "x86_64")
    assert not knows_avx2(tmp_path / "nowhere", "x86_64")
    assert lower_variables({}, tmp_path, tmp_path / "old") == {}


def test_the_users_compiler_is_asked_for_less_and_gets_the_rest_as_it_is(tmp_path: Path) -> None:
    compiler = make_compiler(tmp_path / "my tools" / "clang++-99")
    script = write_script([str(compiler), "-pipe"], tmp_path / "cache")
    done = subprocess.run(
        [script, "-O3", "-march=native", "a b.cpp", "-DX='1 2'", ""], capture_output=True, text=True, check=True
    )
    assert done.stdout == "<-pipe><-O3><-march=x86-64-v3><a b.cpp><-DX='1 2'><>"
    # Inductor tells compilers apart by their names.
    assert script.name == "clang++-99"
    assert write_script([str(compiler), "-pipe"], tmp_path / "cache") == script


def test_the_variable_names_the_compiler_that_inductor_would_have_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    root = make_root(tmp_path, "avx2")
    make_compiler(tmp_path / "bin/g++")
    found = lower_variables({"PATH": str(tmp_path / "bin")}, tmp_path / "cache", root)
    assert found["ATEN_CPU_CAPABILITY"] == "avx2"
    assert str(tmp_path / "bin/g++") in Path(found["CXX"]).read_text()
    chosen = make_compiler(tmp_path / "elsewhere/c++")
    found = lower_variables({"PATH": str(tmp_path / "bin"), "CXX": f"'{chosen}' -v"}, tmp_path / "cache", root)
    assert f"exec {chosen} -v " in Path(found["CXX"]).read_text()
    assert lower_variables({"PATH": "/nowhere"}, tmp_path, root) == {"ATEN_CPU_CAPABILITY": "avx2"}


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cannot be written.*TORCHMARK_CACHE"):
        write_script(["/bin/g++"], tmp_path / "file")


@pytest.mark.parametrize("change", ["content", "mode"])
def test_a_script_that_is_not_as_it_was_written_is_written_anew(tmp_path: Path, change: str) -> None:
    script = write_script(["/bin/g++"], tmp_path)
    good = script.read_text()
    if change == "content":
        script.write_text("#!/bin/sh\ntouch /tmp/owned\n")
    else:
        script.chmod(0o777)
    assert write_script(["/bin/g++"], tmp_path) == script
    assert script.read_text() == good
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_folder_of_scripts_that_others_can_write_is_refused(tmp_path: Path) -> None:
    script = write_script(["/bin/g++"], tmp_path)
    script.parent.chmod(0o777)
    with pytest.raises(SetupError, match="Other users may write to"):
        write_script(["/bin/g++"], tmp_path)
