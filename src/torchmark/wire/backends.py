"""What our own back end of `torch.compile` is called by the worker that has it and by the parent that asks for it."""

from __future__ import annotations

REPLAY = "torchmark_replay"
