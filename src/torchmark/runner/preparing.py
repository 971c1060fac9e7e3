"""Gets cases ready to be measured: TorchScript made, C++ compiled, variants seen to compute the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from torchmark.model.case import Artefact, Case, Check
from torchmark.model.job import CheckJob, Place, Way
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.snippet import Compiled, Snippet
from torchmark.model.task import Language
from torchmark.runner.artefacts import Models, insert_path
from torchmark.runner.building import build_snippets
from torchmark.runner.worker import Worker
from torchmark.wire.messages import Checked

Build = Callable[[Iterable[Snippet]], "dict[Snippet, Compiled | Failure]"]


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A case whose texts are complete, and where to find it if it is C++."""

    case: Case
    compiled: Compiled | None = None
    check: Way | None = None
    """How to find out what it computes."""


def prepare(
    cases: Sequence[Case],
    worker: Worker,
    compiler: Worker,
    models: Models,
    place: Place,
    environ: Mapping[str, str],
) -> dict[Case, Prepared | Failure]:
    """Everything that is needed before the first measurement; what fails here costs its own case only.

    The workers measure time, `compiler` what uses `torch.compile`. What they make serves counting in the same
    environment, too.
    """
    paths = models.make((case.artefact for case in cases if case.artefact is not None), worker)
    located = {case: _locate(case, paths) for case in cases}
    good = [case for case in located.values() if isinstance(case, Case)]
    built = _build_all(good, lambda snippets: build_snippets(snippets, worker.sdk, environ))
    prepared = {case: _assemble(found, built) if isinstance(found, Case) else found for case, found in located.items()}
    problems = dict(compare_variants(prepared, worker, compiler, place))
    return {case: problems.get(case, outcome) for case, outcome in prepared.items()}


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
    # What cannot be handed over, such as the value of a function without one, cannot be compared.
    return Prepared(case, compiled, Way("", "", check) if isinstance(check, Compiled) else None)


def compare_variants(
    prepared: Mapping[Case, Prepared | Failure], worker: Worker, compiler: Worker, place: Place
) -> Iterator[tuple[Case, Failure]]:
    """Those that do not compute what the first of their group does."""
    for group in _group(prepared):
        by_variant: dict[object, list[Case]] = {}
        for case in group:
            by_variant.setdefault(case.autolabels, []).append(case)
        for labels, problem in _compare_group(by_variant, prepared, worker, compiler, place):
            yield from ((case, problem) for case in by_variant[labels])


def _group(prepared: Mapping[Case, Prepared | Failure]) -> list[list[Case]]:
    """Cases that must agree: of the same label, with or without a backward pass."""
    groups: dict[object, list[Case]] = {}
    for case in prepared:
        groups.setdefault((case.suite, case.label, case.autolabels.autograd), []).append(case)
    return list(groups.values())


def _compare_group(
    by_variant: Mapping[object, Sequence[Case]],
    prepared: Mapping[Case, Prepared | Failure],
    worker: Worker,
    compiler: Worker,
    place: Place,
) -> Iterator[tuple[object, Failure]]:
    """The first one that runs is what the others are held to, with the smallest number of threads."""
    first: Prepared | None = None
    for labels, cases in by_variant.items():
        outcome = prepared[cases[0]]
        if isinstance(outcome, Failure) or outcome.check is None:
            continue
        if first is None:
            first = outcome
            continue
        assert first.check is not None
        threads = outcome.case.args.num_threads
        chosen = worker if outcome.case.parts is None else compiler
        reply = chosen.run(CheckJob(first.check, outcome.check, place, threads))
        if isinstance(reply, Failure):
            yield labels, _explain(first.case, reply.message, reply)
            continue
        checked = reply.message
        assert isinstance(checked, Checked)
        if checked.failed == 0:
            # It cannot serve as a witness. Its own failure shows when it is measured.
            first = outcome
        elif checked.failed == 1:
            yield labels, Failure(FailureKind.RAISED, "It fails when it is run once.", checked.problem)
        elif checked.problem is not None:
            yield labels, _explain(first.case, checked.problem)


def _explain(first: Case, problem: str, failure: Failure | None = None) -> Failure:
    labels = first.autolabels.as_dict
    other = f"{labels['language']} ({labels['runtime']})"
    if failure is not None:
        message = f"Its results could not be compared with those of {other}: {problem}"
        return dataclasses.replace(failure, message=message)
    return Failure(FailureKind.DIFFERENT, f"It does not compute what {other} does. {problem}")
