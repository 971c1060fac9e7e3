"""What runs before the statements of a group."""

from __future__ import annotations

import dataclasses

from torchmark.define.faults import BrokenText, break_off
from torchmark.define.options import dedent
from torchmark.errors import DefinitionError
from torchmark.model.line import show_fields


@dataclasses.dataclass(frozen=True, repr=False)
class GroupedSetup:
    """What runs before the statements, by language; `global_setup` stands at file scope in C++.

    >>> GroupedSetup(py_setup="    x = torch.ones(4)").py_setup
    'x = torch.ones(4)'
    """

    py_setup: str = ""
    cpp_setup: str = ""
    global_setup: str = ""

    def __repr__(self) -> str:
        return show_fields(self)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            try:
                text = dedent(getattr(self, field.name), field.name)
            except DefinitionError as error:
                # A group that has this setup is broken, and knows under which label.
                text = BrokenText(break_off(error).error)
            object.__setattr__(self, field.name, text)


def check_setup(setup: GroupedSetup) -> GroupedSetup:
    """The setup, if it is one."""
    if not isinstance(setup, GroupedSetup):
        raise DefinitionError(f"`setup` is a GroupedSetup, not {type(setup)}.")
    for text in (setup.py_setup, setup.cpp_setup, setup.global_setup):
        if isinstance(text, BrokenText):
            raise text.error
    return setup
