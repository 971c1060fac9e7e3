from __future__ import annotations

from pathlib import Path

import pytest

from torchmark.errors import UsageError
from torchmark.native.cache import DEFAULT_LIMIT_BYTES
from torchmark.runner import prepare
from torchmark.runner.folders import cache_folder, locate_cache
from torchmark.runner.machine import read_available_memory
from torchmark.runner.prepare import clear_cache, count_jobs, has_compiler, inspect_cache, open_cache


@pytest.mark.parametrize(
    ("memory", "jobs"), [(None, 4), (100 * 1024**3, 4), (5 * 1024**3, 2), (2 * 1024**3, 1), (1000, 1)]
)
def test_compilers_run_one_a_core_as_far_as_memory_goes(
    memory: int | None, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "read_available_memory", lambda: memory)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert count_jobs() == jobs


def test_the_cache_is_where_and_as_large_as_the_environment_says(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path)}
    assert open_cache(environ).folder == tmp_path / "snippets"
    assert open_cache(environ).limit_bytes == DEFAULT_LIMIT_BYTES
    assert open_cache({**environ, "TORCHMARK_CACHE_SIZE": "5M"}).limit_bytes == 5 * 1024**2
    with pytest.raises(UsageError, match="is not a size"):
        open_cache({**environ, "TORCHMARK_CACHE_SIZE": "five"})


def test_the_cache_can_be_looked_at_before_it_is_there(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path / "none")}
    assert inspect_cache(environ).snippets == 0
    assert clear_cache(environ).size_bytes == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("files", "bytes_left"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   2048 kB\n"}, 2048 * 1024),
        ({"proc/meminfo": "MemAvailable: 2048 kB\n", "sys/fs/cgroup/memory.max": "max\n"}, 2048 * 1024),
        (
            {
                "proc/meminfo": "MemAvailable: 2048 kB\n",
                "sys/fs/cgroup/memory.max": "5000\n",
                "sys/fs/cgroup/memory.current": "4000\n",
            },
            1000,
        ),
    ],
)
def test_memory_is_what_machine_and_group_leave(tmp_path: Path, files: dict[str, str], bytes_left: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_available_memory(tmp_path) == bytes_left


@pytest.mark.parametrize(
    ("variables", "there"),
    [({}, True), ({"CXX": "mine -O1"}, True), ({"CXX": "other"}, False), ({"CXX": "'open"}, False)],
)
def test_a_compiler_is_there_if_the_users_own_or_a_usual_one_is(
    tmp_path: Path, variables: dict[str, str], there: bool
) -> None:
    for name in ("g++", "mine"):
        (tmp_path / name).touch(0o755)
    assert has_compiler({"PATH": str(tmp_path), **variables}) is there
    assert not has_compiler({"PATH": str(tmp_path / "empty"), **variables})


def test_clearing_removes_what_torchmark_has_compiled_and_nothing_else(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path)}
    folder = cache_folder(environ)
    own = [
        f"snippets/{'0a' * 16}.so",
        f"shipping/{'0a' * 16}.so",
        "models/torchscript_m_123_0123abcd.pt",
        f"watched-{'0a' * 8}.so",
        f"frames-{'0b' * 8}.so",
        f"lowering-{'0a' * 8}/g++",
    ]
    users = ["snippets/mylib.so", "models/my_finetuned_llm.pt", "watched-birds.so", "notes.txt", "shipping/a.prelude/x"]
    for name in (*own, *users):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("torn")
    (folder / "models.lock").touch(0o600)
    assert clear_cache(environ).snippets == 1
    assert [name for name in own if (folder / name).exists()] == []
    assert [name for name in users if not (folder / name).exists()] == []
    assert locate_cache(environ) == folder
