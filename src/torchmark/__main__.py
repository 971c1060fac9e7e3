"""`python -m torchmark` is the same program as `torchmark`."""

import sys

from torchmark.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
