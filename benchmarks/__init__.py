"""torchmark and its peers side by side; run them from the project's root with `python -m`, on a quiet machine."""
