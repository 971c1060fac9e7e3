"""Which environment variables a worker gets. The rest stays out: even their length changes what is counted."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

# Where things are and how text is written; they do not change what torch does.
PLAIN = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
# Of these, what is of the person, not of the machine.
SPOKEN = ("LANG", "LOGNAME", "TZ", "USER")
# Read by torch, by the libraries it computes with, or by the runtimes of its threads.
TELLING_PREFIXES = (
    "ATEN_",
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "DNNL_",
    "GOMP_",
    "GOTO_",
    "HIP_",
    "KMP_",
    "MKL_",
    "ONEDNN_",
    "OMP_",
    "OPENBLAS_",
    "PYTORCH_",
    "TORCH",
    "XPU_",
)
# Our own, of which none is for the worker.
OURS = "TORCHMARK_"
# Where torch keeps what it compiles, which says nothing about results. Parts of torch set it for their own process when
# they are first used; handed on, it would make the next worker one of another kind.
TEMPORARY = "TORCHINDUCTOR_CACHE_DIR"
# Where shared libraries are found: right for the interpreter that was started with it, wrong for any other.
OWN_INTERPRETER_ONLY = ("LD_LIBRARY_PATH", "LD_PRELOAD")

# Names of variables that hold secrets. What is recorded is kept in stores, exported and shown in reports.
_SECRET = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY"
    r"|(?:^|_)(?:KEYS?|PASS|PWD|PAT|COOKIES?|AUTH(?!ORS?(?:_|$))[A-Z]*)(?:_|$)",
    re.IGNORECASE,
)
# A name and a password in an address, such as redis://user:password@host.
_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
HIDDEN = "(hidden)"

# Fixed unless the user gives another value for workers. The library under NumPy starts its threads while it is
# imported, and a process with threads cannot be forked.
FIXED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
# Unless the user has set it anywhere. Threads that wait must not count to millions while they do.
PREFERRED = {"OMP_WAIT_POLICY": "passive"}


def choose_variables(environ: Mapping[str, str], given: Mapping[str, str], *, own: bool) -> dict[str, str]:
    """A worker's environment: from the parent's what torch needs, then what is fixed, then what the user gave.

    >>> chosen = choose_variables({"PATH": "/bin", "OMP_NUM_THREADS": "2", "EDITOR": "vi"}, {"A": "1"}, own=False)
    >>> list(chosen)
    ['OMP_WAIT_POLICY', 'PATH', 'OMP_NUM_THREADS', 'PYTHONHASHSEED', 'OPENBLAS_NUM_THREADS', 'A']
    """
    handed = {name: value for name, value in environ.items() if _is_handed(name, own=own)}
    return {**PREFERRED, **handed, **FIXED, **given}


def select_telling(variables: Mapping[str, str], given: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Those worth recording with a result: what torch reads, and what the user gave. Secrets are hidden in both.

    >>> select_telling({"TORCH_API_KEY": "x1", "TORCH_LOGS": "recompiles", "MY_TOKEN": "x2"}, ["MY_TOKEN"])
    (('MY_TOKEN', '(hidden)'), ('TORCH_API_KEY', '(hidden)'), ('TORCH_LOGS', 'recompiles'))
    """
    telling = (name for name in variables if name in given or _is_telling(name) or name in OWN_INTERPRETER_ONLY)
    return tuple((name, _hide_secrets(name, variables[name])) for name in sorted(telling))


def _hide_secrets(name: str, value: str) -> str:
    # A placeholder that tells nothing of the value, not even whether it has changed.
    return HIDDEN if _SECRET.search(name) else _LOGIN.sub(HIDDEN, value)


def travels(name: str) -> bool:
    """Whether a variable is the same on all machines of a run: it says something of the run, not of the machine.

    >>> [name for name in ("PATH", "OMP_NUM_THREADS", "LANG", "TORCHMARK_CACHE", "EDITOR") if travels(name)]
    ['OMP_NUM_THREADS', 'LANG']
    """
    return _is_telling(name) or name in SPOKEN or name.startswith("LC_")


def _is_handed(name: str, *, own: bool) -> bool:
    return name in PLAIN or name.startswith("LC_") or _is_telling(name) or (own and name in OWN_INTERPRETER_ONLY)


def _is_telling(name: str) -> bool:
    return name.startswith(TELLING_PREFIXES) and not name.startswith(OURS) and name != TEMPORARY
