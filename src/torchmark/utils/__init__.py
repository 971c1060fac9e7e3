"""The reference's import paths, kept so that only the prefix of an import line has to change."""

from torchmark.utils import common, compare, timer

__all__ = ["common", "compare", "timer"]
