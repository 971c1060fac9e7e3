"""Random numbers of torch for one stream of inputs; those of the caller stay as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


class Entropy:
    """Generators that all start from one seed, as after `torch.manual_seed`: one for each device that is used."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def on(self, device: torch.device) -> torch.Generator | None:
        """The generator of a device; None where nothing is drawn, as on the meta device."""
        if device.type == "meta":
            return None
        generator = self._generators.get(device)
        if generator is None:
            generator = self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return generator

    @contextlib.contextmanager
    def as_global(self, device: torch.device) -> Iterator[None]:
        """Let code that knows of no generators draw from this stream, on the CPU and on a device."""
        with contextlib.ExitStack() as stack:
            for place in dict.fromkeys((torch.device("cpu"), device)):
                generator = self.on(place)
                if generator is not None:
                    stack.enter_context(_swapped(generator, place))
            yield


@contextlib.contextmanager
def _swapped(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Put a generator's state in the place of a device's own, and keep what becomes of it."""
    if device.type == "cpu":
        own = torch.default_generator
    else:
        defaults = getattr(torch, device.type).default_generators
        # Without an index it is the current one of its kind, which a tensor that is made there tells.
        own = defaults[torch.empty(0, device=device).device.index or 0]
    before = own.get_state()
    own.set_state(generator.get_state())
    try:
        yield
        generator.set_state(own.get_state())
    finally:
        own.set_state(before)
