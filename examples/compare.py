"""Three ways to compute a sum of products, over sizes and thread counts: `python -m examples.compare`.

Each task is measured twice, in two rounds; `Compare` merges the replicates.
"""

from __future__ import annotations

import torch

import torchmark as benchmark

STATEMENTS = {
    "(x * y).sum(-1)": "(x * y).sum(-1)",
    "einsum": "torch.einsum('bi,bi->b', x, y)",
    "bmm": "torch.bmm(x.unsqueeze(1), y.unsqueeze(2))[:, 0, 0]",
}
SHAPES = ((1, 16), (64, 64), (512, 512), (2048, 1024))
THREADS = (1, 2)
ROUNDS = 2


def measure_all(min_run_time: float) -> list[benchmark.Measurement]:
    """Every statement on every shape with every thread count, round after round."""
    results = []
    for _ in range(ROUNDS):
        for shape in SHAPES:
            inputs = {"x": torch.rand(shape), "y": torch.rand(shape)}
            for threads in THREADS:
                for name, stmt in STATEMENTS.items():
                    timer = benchmark.Timer(
                        stmt=stmt,
                        globals=inputs,
                        label="Batched dot product",
                        sub_label=name,
                        description=f"{shape[0]} x {shape[1]}",
                        num_threads=threads,
                    )
                    results.append(timer.blocked_autorange(min_run_time=min_run_time))
    return results


def main(min_run_time: float = 0.1) -> None:
    """Print the table plain, and then as it is most easily read."""
    comparison = benchmark.Compare(measure_all(min_run_time))

    print("Plain:\n")
    comparison.print()

    comparison.trim_significant_figures()
    comparison.colorize()
    comparison.highlight_warnings()
    print("Trimmed to the figures that the scatter supports, coloured by column on a terminal:\n")
    comparison.print()


if __name__ == "__main__":
    main()
