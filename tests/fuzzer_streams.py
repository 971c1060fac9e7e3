"""What the fuzzer of `torch.utils.benchmark` draws from some specifications; and how that is stored.

`python -m tests.fuzzer_streams` runs that fuzzer and writes `tests/golden/fuzzer_streams.json`: for each specification
and seed the parameters, and of each tensor its layout, its first values and a digest of all of them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils.benchmark as reference

GOLDEN = Path(__file__).parent / "golden" / "fuzzer_streams.json"
SEEDS = (0, 1, 17, 2**32 - 1)
INPUTS = 4
# What there is of values, besides the digest.
FIRST = 5

Specification = Callable[[Any], Any]


def whole_and_float_bounds(benchmark: Any) -> Any:
    """Parameters of each kind, without tensors."""
    return [
        benchmark.FuzzedParameter("log", 1, 1_000_000, "loguniform"),
        benchmark.FuzzedParameter("log_float", 1.5, 99.5, "loguniform"),
        benchmark.FuzzedParameter("log_narrow", 3, 3, "loguniform"),
        benchmark.FuzzedParameter("whole", -5, 5, "uniform"),
        benchmark.FuzzedParameter("large", 0, 2**32 - 1, "uniform"),
        benchmark.FuzzedParameter("float", 0.0, 1.0, "uniform"),
        benchmark.FuzzedParameter("half_float", 2, 3.5, "uniform"),
    ], []


def known(benchmark: Any) -> Any:
    """One length, one tensor."""
    return [benchmark.FuzzedParameter("n", 1, 16, "loguniform")], [benchmark.FuzzedTensor("x", size=("n",))]


def bounds(benchmark: Any) -> Any:
    """Bounds and a constraint that reject many draws, and a parameter that is kept meanwhile."""
    return (
        [
            benchmark.FuzzedParameter("dim", 1, 3, "uniform", strict=True),
            [benchmark.FuzzedParameter(f"k{i}", 1, 256, "loguniform") for i in range(3)],
            [benchmark.FuzzedParameter(f"step{i}", 1, 3, "uniform") for i in range(3)],
        ],
        [
            benchmark.FuzzedTensor(
                "x",
                size=("k0", "k1", "k2"),
                steps=("step0", "step1", "step2"),
                probability_contiguous=0.25,
                min_elements=16,
                max_elements=512,
                max_allocation_bytes=8192,
                dim_parameter="dim",
            )
        ],
        [lambda params: params["k0"] % 3 != 0],
    )


def orders(benchmark: Any) -> Any:
    """Several tensors of several types, often not contiguous; fixed sizes and more dimensions than sizes."""
    tensor = benchmark.FuzzedTensor
    return [
        benchmark.FuzzedParameter("m", 2, 5, "uniform"),
        benchmark.FuzzedParameter("dim", 1, 4, "uniform", strict=True),
        benchmark.FuzzedParameter("step", 1, 2, "uniform"),
    ], [
        tensor("a", size=("m", 3, "m"), probability_contiguous=0.1, dtype=torch.int32),
        [
            tensor("b", size=("m", 4), steps=("step", 1), dim_parameter="dim", dtype=torch.complex64),
            tensor("c", size=(2, "m"), steps=(1, "step"), probability_contiguous=0.0, dtype=torch.float64),
        ],
        tensor("d", size=(), dtype=torch.int64),
        tensor("e", size=("m", 2), steps=(2,), probability_contiguous=1.0, dtype=torch.float16),
        tensor("f", size=("m",), dtype=torch.uint8),
        tensor("g", size=("m", 2, 2), dtype=torch.bfloat16),
        tensor("h", size=("m", 0), steps=(1, "step"), dtype=torch.int8),
    ]


SPECIFICATIONS: dict[str, Specification] = {
    specification.__name__: specification for specification in (whole_and_float_bounds, known, bounds, orders)
}


def run_stream(benchmark: Any, name: str, seed: int) -> list[dict[str, Any]]:
    """The first inputs of a specification, from either fuzzer."""
    fuzzer = benchmark.Fuzzer(*SPECIFICATIONS[name](benchmark), seed=seed)
    return [describe_item(*item) for item in fuzzer.take(INPUTS)]


def describe_item(tensors: Any, properties: Any, params: Any) -> dict[str, Any]:
    """All that there is to an input, in few words."""
    return {
        "params": params,
        "tensors": {name: describe_tensor(tensor, properties[name]) for name, tensor in tensors.items()},
    }


def describe_tensor(tensor: torch.Tensor, properties: dict[str, Any]) -> dict[str, Any]:
    """Layout, first values, and a digest of all."""
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().flatten()
    return {
        **properties,
        "order": [int(i) for i in properties["order"]],
        "steps": list(properties["steps"]),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "first": flat[:FIRST].tolist(),
        "digest": hashlib.sha256(bytes(flat.view(torch.uint8).tolist())).hexdigest()[:16],
    }


def main() -> None:
    """Write the file."""
    streams = {name: {str(seed): run_stream(reference, name, seed) for seed in SEEDS} for name in SPECIFICATIONS}
    made_with = {"torch": torch.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}
    GOLDEN.write_text(json.dumps({"made_with": made_with, "streams": streams}) + "\n")


if __name__ == "__main__":
    main()
