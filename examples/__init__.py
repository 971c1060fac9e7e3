"""Small programs that show torchmark at work; run them from the project's root with `python -m`."""
