"""Runs a statement until the interpreter has settled on how to execute it."""

from __future__ import annotations

from types import CodeType

from torchmark.measure.steps import Steps

# CPython 3.11 starts to specialise a function at its eighth round, and 3.12 and newer wait for up to 52 executions of
# an instruction whose first guess was wrong. Functions that the statement calls need the same.
WARM_UP_RUNS = 64
# A statement of which only a few runs are wanted is a slow one: no more than needed for the first specialisation.
FEWEST_WARM_UP_RUNS = 12
# Then look at the loop's own instructions after every few runs, until they stay; some change their minds for ever.
RUNS_BETWEEN_LOOKS = 4
MOST_LOOKS = 32


def warm_up(code: CodeType | None, number: int) -> Steps[int]:
    """Run it before a measurement of `number` runs; how often depends on nothing but the program. Gives the runs.

    `code` is what the interpreter runs; None for a statement that is compiled.
    """
    runs = max(FEWEST_WARM_UP_RUNS, min(WARM_UP_RUNS, number))
    yield runs
    if code is None:
        return runs
    before = specialised_instructions(code)
    for _ in range(MOST_LOOKS):
        yield RUNS_BETWEEN_LOOKS
        runs += RUNS_BETWEEN_LOOKS
        after = specialised_instructions(code)
        if after == before:
            break
        before = after
    return runs


def specialised_instructions(code: CodeType) -> bytes:
    """The instructions as the interpreter runs them now, without its counters between them.

    Empty for an interpreter that does not specialise.
    """
    adaptive: bytes = getattr(code, "_co_code_adaptive", b"")
    # In the code as compiled, counters are instructions numbered 0 (CACHE); a position holds one in both or neither.
    return bytes(now for now, compiled in zip(adaptive[::2], code.co_code[::2]) if compiled)
