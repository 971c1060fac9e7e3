"""Where cases spend what they spend: exact stacks of an interpreter, and sampled ones."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Generator, Mapping, Sequence

from torchmark.analysis.samples import read_samples
from torchmark.analysis.stacks import read_stacks
from torchmark.errors import SetupError, TorchmarkError
from torchmark.measure.script import write_script
from torchmark.measure.source import user_traceback
from torchmark.model.bout import Part
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.flame import Stacks
from torchmark.model.job import CountJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Target
from torchmark.model.task import Language
from torchmark.runner.artefacts import Models
from torchmark.runner.lab import Lab
from torchmark.runner.parts import make_parts
from torchmark.runner.sampling import sample
from torchmark.runner.tracing import trace
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker

COMPILING = "A case that uses torch.compile has no flame graph yet: its frames replace Python's own."


class Tracer:
    """Finds out where cases spend their instructions, in one target. Has a worker of its own, started when needed."""

    def __init__(
        self, target: Target, environ: Mapping[str, str] = os.environ, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._lab = Lab(target, environ)
        self._environ = environ
        self._timeout_s = timeout_s
        self.worker: Worker = self._lab.make_tracer()

    @property
    def environment(self) -> Environment:
        """Where it runs."""
        return self.worker.environment

    def trace(self, cases: Sequence[Case], number: int) -> Generator[tuple[Case, Stacks | Failure], None, None]:
        """The stacks of `number` runs of each case, as they come."""
        with Models(self._environ) as models:
            plain = [case for case in cases if case.parts is None]
            parts = make_parts(plain, self._lab, models, self._environ, self._timeout_s)
            for case in cases:
                part = parts.get(case, Failure(FailureKind.MISSING, COMPILING))
                yield case, part if isinstance(part, Failure) else self._trace(part, number)

    def _trace(self, part: Part, number: int) -> Stacks | Failure:
        job = CountJob(part.stmt, part.setup, part.place, number, part.threads, compiled=part.compiled)
        try:
            found = trace(self.worker, job, timeout_s=self._timeout_s)
        except SetupError as error:
            return Failure(FailureKind.MISSING, str(error))
        return found if isinstance(found, Failure) else read_stacks(found).stacks

    def close(self) -> None:
        """End its workers."""
        self._lab.abandon()


@contextlib.contextmanager
def open_tracer(target: Target, environ: Mapping[str, str] = os.environ) -> Generator[Tracer, None, None]:
    """A tracer for a block."""
    tracer = Tracer(target, environ)
    try:
        yield tracer
    finally:
        tracer.close()


def start_together(base: Tracer, head: Tracer) -> None:
    """Start both at once: each takes a core for half a minute."""
    starting = threading.Thread(target=_try_to_start, args=(head,), daemon=True)
    starting.start()
    base.worker.start()
    starting.join()
    # Whatever was wrong with it is said here.
    head.worker.start()


def _try_to_start(tracer: Tracer) -> None:
    with contextlib.suppress(TorchmarkError):
        tracer.worker.start()


def sample_case(
    case: Case, target: Target, *, seconds: float, rate: int, native: bool, environ: Mapping[str, str] = os.environ
) -> Stacks | Failure:
    """What py-spy sees of a case; SetupError where it is not there, or not let."""
    if case.args.language == Language.CPP or case.parts is not None or case.artefact is not None:
        text = "Only plain statements of Python can be sampled. The exact graph is there for all others."
        return Failure(FailureKind.MISSING, text)
    lab = Lab(target, environ)
    try:
        part = Part(case.args.stmt, case.args.setup, lab.place(case), case.args.num_threads)
    finally:
        lab.abandon()
    try:
        script = write_script(part.stmt, part.setup)
    except SyntaxError as error:
        return Failure(FailureKind.RAISED, user_traceback(error).strip())
    python = target.python or sys.executable
    found = sample(script, part, python, seconds=seconds, rate=rate, native=native, environ=environ)
    return found if isinstance(found, Failure) else read_samples(found.text, found.seconds)
