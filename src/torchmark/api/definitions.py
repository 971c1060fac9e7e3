"""`materialize`: what a definition or a suite describes, as arguments of a `Timer`.

A module of its own because it is public and imports torch, which is loaded when it is used.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import traceback
from collections.abc import Mapping
from typing import Any

import torch

from torchmark.define.expand import expand, flatten
from torchmark.files import is_ours
from torchmark.measure.torch_files import SEED, read_sdk, script_model
from torchmark.model.plan import Artefact, AutoLabels, Case, Label, TimerArgs
from torchmark.model.task import Language
from torchmark.runner.prepare import Models, insert_path


def materialize(benchmarks: Mapping[Any, Any]) -> tuple[tuple[Label, AutoLabels, TimerArgs], ...]:
    """Expand a definition, nested or flattened, to label, variant and `Timer` arguments of every case.

    TorchScript models are made in this process, once each, and removed when it ends. Where torch refuses to make one,
    the cases that need it raise that error when they are run; all others are as they should be.

    >>> from torchmark import GroupedStmts
    >>> for label, variant, args in materialize({"add": GroupedStmts("x + 1", "x + 1;")}):
    ...     print(label, variant.language.name, args.stmt)
    ('add',) PYTHON x + 1
    ('add',) CPP x + 1;
    """
    made: dict[Artefact, str | Exception] = {}
    flat = []
    for case in expand(flatten(benchmarks)):
        if case.artefact is not None:
            if case.artefact not in made:
                made[case.artefact] = _make(case.artefact)
            case = _complete(case, made[case.artefact])
        flat.append((case.label, case.autolabels, case.args))
    return tuple(flat)


@functools.cache
def _open_models() -> Models:
    models = Models(os.environ)
    atexit.register(models.close)
    return models


def _make(artefact: Artefact) -> str | Exception:
    models = _open_models()
    models.open()
    path = models.place(artefact, read_sdk())
    if not is_ours(path):
        try:
            # The program's own random numbers stay what they are.
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(SEED)
                script_model(artefact.source, str(path))
        except Exception as error:
            return error
    return str(path)


def _complete(case: Case, path: str | Exception) -> Case:
    if isinstance(path, str):
        return insert_path(case, path)
    reason = f"There is no TorchScript of this model.\n{''.join(traceback.format_exception_only(path)).strip()}"
    # Before anything else, so that it is what is told.
    if case.args.language == Language.PYTHON:
        refusal = f"raise RuntimeError({reason!r})"
    else:
        refusal = f"TORCH_CHECK(false, {json.dumps(reason)});"
    args = dataclasses.replace(case.args, setup=f"{refusal}\n{case.args.setup}")
    return dataclasses.replace(case, args=args)
