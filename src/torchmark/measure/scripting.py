"""Makes TorchScript of a model's source, and keeps it in a file for Python and C++ to load."""

from __future__ import annotations

import contextlib
import os
import tempfile

import torch

from torchmark.measure.source import open_source

# Weights are the same in all variants of a benchmark: each starts from here.
SEED = 0


class ScriptRefused(Exception):
    """This torch has no TorchScript, or does not make it of that model."""


def script_model(source: str, path: str) -> None:
    """Run the source, which makes `jit_model`, and save that. The caller has seeded the generator."""
    if getattr(torch, "jit", None) is None or not hasattr(torch.jit, "script"):
        raise ScriptRefused(f"torch {torch.__version__} has no TorchScript.")
    # TorchScript reads the text of what it compiles.
    file = open_source(source, "")
    namespace = {"__name__": "torchmark_model", "torch": torch}
    exec(compile(source, file.name, "exec", dont_inherit=True), namespace)
    model = namespace.get("jit_model")
    if not isinstance(model, (torch.jit.ScriptFunction, torch.jit.ScriptModule)):
        raise ScriptRefused(f"The model did not become TorchScript but {type(model)}.")
    # Whoever sees the file sees all of it. Processes of two containers may have the same number.
    handle, draft = tempfile.mkstemp(prefix=f"{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        torch.jit.save(model, draft)
        os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
        raise
    finally:
        os.close(handle)
