"""How long `torchmark --help` takes, against starting Python and doing nothing: `python -m benchmarks.startup`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.context import describe

REPETITIONS = 40

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "torchmark --help": [str(Path(sys.executable).with_name("torchmark")), "--help"],
    "torchmark time --help": [str(Path(sys.executable).with_name("torchmark")), "time", "--help"],
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
}


def main() -> None:
    """Run the commands in turns and print their medians and the ratio to the first."""
    print(describe(), "\n")
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPETITIONS):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    nothing = statistics.median(seconds["python -c pass"])
    print("| command | median | ratio |")
    print("| --- | ---: | ---: |")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"| `{name}` | {median * 1e3:.1f} ms | {median / nothing:.2f} |")


if __name__ == "__main__":
    main()
