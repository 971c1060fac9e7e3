"""Gets cases ready to be measured: TorchScript made, C++ compiled, variants seen to compute the same."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchmark.model.case import Artefact, Case, Check
from torchmark.model.job import Way
from torchmark.model.outcome import ActivityKind, Failure
from torchmark.model.sdk import Sdk
from torchmark.model.snippet import Compiled, Snippet
from torchmark.model.task import Language
from torchmark.runner.artefacts import Models, insert_path
from torchmark.runner.building import build_snippets, count_jobs
from torchmark.runner.comparing import Bench, Prepared, Witnesses
from torchmark.runner.persisting import persist

Made = dict[Case, "Prepared | Failure"]
Build = Callable[[Sequence[Snippet], Sdk, int], Mapping[Snippet, "Compiled | Failure"]]
"""Compiles snippets for a torch with so many compilers at a time."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A part of the preparation. `run` is given how many cores it may use, and gives the cases that are ready then."""

    kind: ActivityKind
    size: int
    run: Callable[[int], Made]


class Preparation:
    """Everything that cases need before they are measured; what fails here costs its own case only.

    What is made serves counting in the same environment, too. The stages are to be run one after the other. Python
    comes first: it can be measured while C++ is compiled.
    """

    def __init__(
        self,
        bench: Bench,
        models: Models,
        environ: Mapping[str, str],
        stop: threading.Event | None = None,
        build: Build | None = None,
    ) -> None:
        """`build` has C++ compiled; by default that happens here."""
        self._bench = bench
        self._models = models
        self._build = build or (lambda snippets, sdk, jobs: build_snippets(snippets, sdk, environ, stop, jobs))
        self._witnesses = Witnesses(bench)
        self._located: dict[Case, Case | Failure] = {}
        self._paths: dict[Artefact, str | Failure] = {}
        self._assembled: Made = {}

    def stages(self, cases: Sequence[Case]) -> Iterator[Stage]:
        """What there is to do for these cases."""
        python = [case for case in cases if case.args.language == Language.PYTHON and case.parts is None]
        compiled = [case for case in cases if case.parts is not None]
        native = [case for case in cases if case.args.language == Language.CPP]
        if any(case.artefact for case in cases):
            yield Stage(
                ActivityKind.SCRIPT, sum(case.artefact is not None for case in cases), lambda _: self._script(cases)
            )
        if python:
            yield Stage(ActivityKind.CHECK, len(python), lambda _: self._check(python))
        if native:
            yield Stage(ActivityKind.COMPILE, len(native), lambda jobs: self._compile(native, jobs))
            yield Stage(ActivityKind.CHECK, len(native), lambda _: self._check(native))
        if compiled:
            yield Stage(ActivityKind.CHECK, len(compiled), lambda _: self._check(compiled))

    def _script(self, cases: Sequence[Case]) -> Made:
        wanted = [case.artefact for case in cases if case.artefact is not None]
        self._paths.update(self._models.make(wanted, self._bench.worker))
        self._located.update((case, _locate(case, self._paths)) for case in cases)
        return {}

    def _compile(self, cases: Sequence[Case], jobs: int) -> Made:
        located = {case: self._located.get(case, case) for case in cases}
        good = [case for case in located.values() if isinstance(case, Case)]
        snippets = [snippet for case in good for snippet in list_snippets(case)]
        built = persist(lambda: self._build(snippets, self._bench.worker.sdk, jobs))
        if isinstance(built, Failure):
            built = dict.fromkeys(snippets, built)
        for case, found in located.items():
            self._assembled[case] = _assemble_native(found, built) if isinstance(found, Case) else found
        return {}

    def _check(self, cases: Sequence[Case]) -> Made:
        prepared: Made = {}
        for case in cases:
            if case not in self._assembled:
                found = self._located.get(case, case)
                self._assembled[case] = _assemble(found) if isinstance(found, Case) else found
            assembled = self._assembled[case]
            path = None if case.artefact is None else self._paths.get(case.artefact)
            if isinstance(assembled, Prepared) and isinstance(path, str):
                assembled = dataclasses.replace(assembled, model=path)
            prepared[case] = assembled
        return {**prepared, **dict(self._witnesses.compare(prepared))}


def prepare(
    cases: Sequence[Case], bench: Bench, models: Models, environ: Mapping[str, str], build: Build | None = None
) -> Made:
    """All of it at once."""
    ready: Made = {}
    for stage in Preparation(bench, models, environ, build=build).stages(cases):
        ready.update(stage.run(count_jobs()))
    return {case: ready[case] for case in cases}


def _locate(case: Case, paths: Mapping[Artefact, str | Failure]) -> Case | Failure:
    """Write the path of its model into a case that loads one."""
    if case.artefact is None:
        return case
    path = paths[case.artefact]
    return path if isinstance(path, Failure) else insert_path(case, path)


def list_snippets(case: Case) -> Iterator[Snippet]:
    """What there is to compile for a case of C++."""
    yield _snippet(case)
    if case.check is not None:
        yield _check_snippet(case, case.check)


def _snippet(case: Case) -> Snippet:
    setup = "" if case.args.setup == "pass" else case.args.setup
    return Snippet(case.args.stmt, setup, case.args.global_setup)


def _check_snippet(case: Case, check: Check) -> Snippet:
    return Snippet(check.stmt, check.setup, case.args.global_setup)


def _assemble(case: Case) -> Prepared:
    return Prepared(case, check=Way(case.check.stmt, case.check.setup) if case.check else None)


def _assemble_native(case: Case, built: Mapping[Snippet, Compiled | Failure]) -> Prepared | Failure:
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
