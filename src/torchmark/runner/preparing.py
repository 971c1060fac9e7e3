"""Gets cases ready to be measured: TorchScript made, C++ compiled, variants seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from torchmark.errors import SetupError
from torchmark.model.case import Artefact, Case, Check
from torchmark.model.job import Way
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.snippet import Compiled, Snippet
from torchmark.model.task import Language
from torchmark.runner.artefacts import Models, insert_path
from torchmark.runner.building import build_snippets
from torchmark.runner.comparing import Bench, Prepared, compare_variants
from torchmark.runner.worker import Worker

Build = Callable[[Sequence[Snippet]], "dict[Snippet, Compiled | Failure]"]


def prepare(
    cases: Sequence[Case], bench: Bench, models: Models, environ: Mapping[str, str]
) -> dict[Case, Prepared | Failure]:
    """Everything that is needed before the first measurement; what fails here costs its own case only.

    What is made serves counting in the same environment, too.
    """
    paths = models.make((case.artefact for case in cases if case.artefact is not None), bench.worker)
    located = {case: _locate(case, paths) for case in cases}
    good = [case for case in located.values() if isinstance(case, Case)]
    built = _build_all(good, lambda snippets: _build(snippets, bench.worker, environ))
    prepared = {case: _assemble(found, built) if isinstance(found, Case) else found for case, found in located.items()}
    problems = dict(compare_variants(prepared, bench))
    return {case: problems.get(case, outcome) for case, outcome in prepared.items()}


def _build(
    snippets: Sequence[Snippet], worker: Worker, environ: Mapping[str, str]
) -> dict[Snippet, Compiled | Failure]:
    try:
        return build_snippets(snippets, worker.sdk, environ)
    except SetupError as error:
        return dict.fromkeys(snippets, Failure(FailureKind.MISSING, str(error)))


def _locate(case: Case, paths: Mapping[Artefact, str | Failure]) -> Case | Failure:
    """Write the path of its model into a case that loads one."""
    if case.artefact is None:
        return case
    path = paths[case.artefact]
    return path if isinstance(path, Failure) else insert_path(case, path)


def _build_all(cases: Sequence[Case], build: Build) -> dict[Snippet, Compiled | Failure]:
    snippets = [snippet for case in cases if case.args.language == Language.CPP for snippet in _snippets(case)]
    return build(snippets) if snippets else {}


def _snippets(case: Case) -> Iterator[Snippet]:
    yield _snippet(case)
    if case.check is not None:
        yield _check_snippet(case, case.check)


def _snippet(case: Case) -> Snippet:
    setup = "" if case.args.setup == "pass" else case.args.setup
    return Snippet(case.args.stmt, setup, case.args.global_setup)


def _check_snippet(case: Case, check: Check) -> Snippet:
    return Snippet(check.stmt, check.setup, case.args.global_setup)


def _assemble(case: Case, built: Mapping[Snippet, Compiled | Failure]) -> Prepared | Failure:
    if case.args.language == Language.PYTHON:
        return Prepared(case, check=Way(case.check.stmt, case.check.setup) if case.check else None)
    compiled = built[_snippet(case)]
    if isinstance(compiled, Failure):
        return compiled
    if case.check is None:
        return Prepared(case, compiled)
    check = built[_check_snippet(case, case.check)]
    if isinstance(check, Failure):
        # What cannot be handed over, such as the value of a function without one, cannot be compared.
        return Prepared(case, compiled, unchecked=f"Handing over its results does not compile: {check.message}")
    return Prepared(case, compiled, Way("", "", check))
