"""What each side of a comparison runs of a case: its text, or where its compiled code is, made for that torch."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

from torchmark.errors import SetupError
from torchmark.model.bout import Part
from torchmark.model.case import Case
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Language
from torchmark.runner.artefacts import Models
from torchmark.runner.comparing import Prepared
from torchmark.runner.lab import Lab
from torchmark.runner.preparing import Build, prepare
from torchmark.runner.worker import DEFAULT_TIMEOUT_S


def make_parts(
    cases: Sequence[Case],
    lab: Lab,
    models: Models,
    environ: Mapping[str, str] = os.environ,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    build: Build | None = None,
) -> dict[Case, Part | Failure]:
    """TorchScript made and C++ compiled where that is needed; a worker is started only then."""
    # Whether variants agree is none of this; and what is not checked needs no code for it.
    bare = {case: dataclasses.replace(case, check=None) for case in cases}
    hard = [one for one in bare.values() if one.artefact is not None or one.args.language == Language.CPP]
    try:
        ready = prepare(hard, lab.bench(timeout_s), models, environ, build) if hard else {}
    except SetupError as error:
        ready = dict.fromkeys(hard, Failure(FailureKind.MISSING, str(error)))
    return {case: _make_part(case, ready.get(one, Prepared(one)), lab) for case, one in bare.items()}


def _make_part(case: Case, prepared: Prepared | Failure, lab: Lab) -> Part | Failure:
    if isinstance(prepared, Failure):
        return prepared
    args = prepared.case.args
    return Part(args.stmt, args.setup, lab.place(case), args.num_threads, prepared.compiled)
