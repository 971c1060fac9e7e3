"""An interpreter whose torch is a few lines of Python beside the headers of `stub_torch`: it is up at once.

Under Valgrind it takes a second or two instead of twenty, and a compiler is done with its C++ in a fraction of one.
All else is real.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.stub_torch import make_stub_torch

PACKAGE = {
    "__init__.py": '''
import os, types
from . import nn, testing

__version__ = "0.1"
version = types.SimpleNamespace(cuda=None, hip=None, debug=False, git_version="abc")
__config__ = types.SimpleNamespace(show=lambda: "a stub", _cxx_flags=lambda: "-O0")
_C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
backends = types.SimpleNamespace(cpu=types.SimpleNamespace(get_cpu_capability=lambda: "STUB"))
accelerator = types.SimpleNamespace(is_available=lambda: False)
uint8 = int8 = int16 = int32 = int64 = float16 = float32 = float64 = bfloat16 = complex64 = complex128 = bool = "type"
strided = "strided"
threads = 1


def get_num_threads():
    return threads


def set_num_threads(number):
    global threads
    threads = number


def manual_seed(seed):
    pass


class Tensor:
    """Whatever is done to it, it stays the same."""

    layout = strided

    def stay(self, *args, **kwargs):
        return self

    __add__ = __sub__ = __mul__ = __truediv__ = __matmul__ = __iadd__ = __getitem__ = stay
    backward = clone = cpu = detach = item = mean = reshape = sum = t = view = stay


def make(*args, **kwargs):
    return Tensor()


add = cat = empty = frombuffer = ones = relu = tensor = zeros = make
''',
    "nn.py": """
class Linear:
    def __init__(self, *size):
        pass

    def __call__(self, x):
        return x
""",
    "testing.py": """
def assert_close(*args, **kwargs):
    pass
""",
}


def make_stub_python(folder: Path, base: str = sys.executable, more: str = "") -> str:
    """Make it in this folder from a real interpreter, and give the path of its program.

    `more` is Python that this torch runs when it is imported.
    """
    subprocess.run([base, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    make_stub_torch(site / "torch")
    for name, text in PACKAGE.items():
        (site / "torch" / name).write_text(text)
    with (site / "torch" / "__init__.py").open("a") as file:
        file.write(more)
    return str(folder / "bin" / "python")


# Prints the version of a CPython that torchmark supports and that can make virtual environments, and nothing otherwise.
_ASK = """
import platform, sys, ensurepip, venv
if sys.implementation.name == "cpython" and sys.version_info >= (3, 9) and "t" not in sys.abiflags:
    print(platform.python_version())
"""


@functools.cache
def find_pythons() -> dict[str, str]:
    """The CPythons of this machine, one for each minor version: their versions, and where they are.

    On the path, and among those that pyenv has installed.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = [str(path) for path in pyenv.glob("3.*/bin/python3")] if os.access(pyenv, os.X_OK) else []
    on_path = [shutil.which(f"python3.{minor}") for minor in range(9, 30)]
    found: dict[tuple[int, ...], str] = {}
    for program in (sys.executable, *installed, *on_path):
        if program is None:
            continue
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run([program, "-c", _ASK], capture_output=True, text=True, timeout=60)
            version = done.stdout.strip()
            # A version that is being developed ends in a letter, which does not matter here.
            if version:
                found.setdefault(tuple(map(int, version.split(".")[:2])), f"{version}={program}")
    return dict(found[minor].split("=", 1) for minor in sorted(found))
