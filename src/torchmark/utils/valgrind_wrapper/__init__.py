"""The reference's import path."""

from torchmark.utils.valgrind_wrapper import timer_interface

__all__ = ["timer_interface"]
