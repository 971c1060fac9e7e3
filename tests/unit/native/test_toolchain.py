from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.stub_torch import make_stub_torch
from torchmark.errors import SetupError
from torchmark.model.task import Snippet
from torchmark.native.toolchain import Toolchain, find_compiler, make_toolchain

SNIPPET = Snippet("f();")


def fake_compiler(folder: Path, name: str = "c++", version: str = "fake 1.0") -> Path:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{version}"\n')
    path.chmod(0o755)
    return path


def toolchain(tmp_path: Path, flags: str = "-O2", **environ: str) -> Toolchain:
    fake_compiler(tmp_path)
    return make_toolchain(make_stub_torch(tmp_path / "torch", flags), {"PATH": f"{tmp_path}:/bin", **environ}, "/work")


def test_the_users_compiler_comes_first(tmp_path: Path) -> None:
    mine = fake_compiler(tmp_path, "my c++")
    fake_compiler(tmp_path)
    assert find_compiler({"PATH": str(tmp_path)}) == [str(tmp_path / "c++")]
    assert find_compiler({"PATH": str(tmp_path), "CXX": f"'{mine}' -v"}) == [str(mine), "-v"]


@pytest.mark.parametrize(("environ", "named"), [({}, r"c\+\+, g\+\+, clang\+\+"), ({"CXX": "icpc"}, "icpc")])
def test_no_compiler_is_told_with_what_to_install(tmp_path: Path, environ: dict[str, str], named: str) -> None:
    with pytest.raises(SetupError, match=rf"no C\+\+ compiler \({named}\).*apt-get install g\+\+"):
        find_compiler({"PATH": str(tmp_path), **environ})


def test_a_compiler_that_does_not_work_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SetupError, match=r"broken does not work: no licence\. Name another in CXX"):
        toolchain(tmp_path, CXX=str(broken))


def test_no_headers_are_told_with_what_to_install(tmp_path: Path) -> None:
    sdk = dataclasses.replace(make_stub_torch(tmp_path), folder=str(tmp_path / "elsewhere"))
    with pytest.raises(SetupError, match=r"The torch of /stub/python has no C\+\+ headers.*libtorch-dev"):
        make_toolchain(sdk, {"PATH": "/bin"}, "/")


def test_flags_follow_torch_but_for_what_is_only_its_own_business(tmp_path: Path) -> None:
    flags = "-Wall -O3 -g -gsplit-dwarf -DNDEBUG -fno-math-errno -fdiagnostics-color=always -fopenmp -march=x86-64-v3"
    made = toolchain(tmp_path, flags).compile_flags
    assert made[:6] == (
        "-O3",
        "-DNDEBUG",
        "-fno-math-errno",
        "-march=x86-64-v3",
        "-std=c++17",
        "-D_GLIBCXX_USE_CXX11_ABI=1",
    )
    assert not {"-Wall", "-g", "-gsplit-dwarf", "-fdiagnostics-color=always", "-fopenmp"} & set(made)


def test_code_is_optimised_even_if_torch_does_not_say_so(tmp_path: Path) -> None:
    assert "-O2" in toolchain(tmp_path, "").compile_flags


def test_the_users_own_flags_come_last(tmp_path: Path) -> None:
    made = toolchain(tmp_path, CXXFLAGS="-O1 '-DA=b c'", CPPFLAGS="-I/x", LDFLAGS="-lmine")
    assert made.compile_flags[-3:] == ("-I/x", "-O1", "-DA=b c")
    assert made.link_flags[-1] == "-lmine"


def test_equal_keys_mean_equal_code(tmp_path: Path) -> None:
    base = toolchain(tmp_path).key(SNIPPET)
    assert base == toolchain(tmp_path).key(SNIPPET)
    others = [
        toolchain(tmp_path).key(Snippet("f(); ")),
        toolchain(tmp_path).key(Snippet("", "f();")),
        toolchain(tmp_path).key(Snippet("f();", "", "// x")),
        toolchain(tmp_path, "-O3").key(SNIPPET),
        toolchain(tmp_path, CXXFLAGS="-O1").key(SNIPPET),
        toolchain(tmp_path, CPATH="/x").key(SNIPPET),
        toolchain(tmp_path, CXX=str(fake_compiler(tmp_path, "other", "fake 2.0"))).key(SNIPPET),
    ]
    sdk = make_stub_torch(tmp_path / "torch")
    environ = {"PATH": f"{tmp_path}:/bin"}
    others += [
        make_toolchain(dataclasses.replace(sdk, version="0.2"), environ, "/work").key(SNIPPET),
        make_toolchain(dataclasses.replace(sdk, git_version="def"), environ, "/work").key(SNIPPET),
        make_toolchain(dataclasses.replace(sdk, cxx11_abi=False), environ, "/work").key(SNIPPET),
    ]
    assert len({base, *others}) == 1 + len(others)


def test_the_working_folder_matters_to_those_who_include_from_it(tmp_path: Path) -> None:
    sdk, environ = make_stub_torch(tmp_path / "torch"), {"PATH": f"{tmp_path}:/bin"}
    fake_compiler(tmp_path)
    here, there = make_toolchain(sdk, environ, "/here"), make_toolchain(sdk, environ, "/there")
    assert here.key(SNIPPET) == there.key(SNIPPET)
    mine = Snippet("f();", "", '#include "mine.h"')
    assert here.key(mine) != there.key(mine)
