"""Cases of `torch.compile` for tests, put together as a benchmark definition would."""

from __future__ import annotations

from torchmark.model.plan import AutogradMode, AutoLabels, Case, CompileMode, CompileParts, RuntimeMode, TimerArgs
from torchmark.model.task import Language

SETUP = """
def model(x, w):
    return torch.tanh(x @ w + 1).sum()
x, w = torch.ones(8, 8), torch.ones(8, 8, requires_grad=True)
"""
CALL = "y = compiled_model(x, w)"


def make_case(backend: str, setup: str = SETUP, call: str = CALL, after: str = "") -> Case:
    """A case with the statement `call` and then `after`, such as a backward pass."""
    mode = CompileMode(backend)
    stmt = f"{call}\n{after}" if after else call
    loop = "\n".join(f"    {line}" for line in stmt.splitlines())
    compiling = f"compiled_model = torch.compile(model, backend={backend!r})\nfor _ in range(3):\n{loop}"
    return Case(
        ("case",),
        AutoLabels(RuntimeMode.COMPILE, AutogradMode.EXPLICIT, Language.PYTHON, mode),
        TimerArgs(stmt, f"{setup}\n{compiling}"),
        parts=CompileParts(setup, call, mode),
    )
