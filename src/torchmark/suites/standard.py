"""The standard suite: 181 cases that cover what every PyTorch program does.

Labels and their order are the identity of results, also of those that were taken elsewhere: they must not change.
Texts may be improved.
"""

from __future__ import annotations

from torchmark.define.expand import flatten
from torchmark.define.groups import GroupedBenchmark, GroupedModules, GroupedStmts, GroupedVariants
from torchmark.define.options import GroupedSetup
from torchmark.define.signature import parse_stmts
from torchmark.suites._computations import MODULES, TRAINING, Setup

# Variants of a group must compute the same.
CHECK = True


def _stmts(python: str, cpp: str, setup: Setup = Setup.TRIVIAL_2D) -> GroupedBenchmark:
    return GroupedStmts(python, cpp, setup=setup.value)


def _module(name: str) -> GroupedBenchmark:
    module = MODULES[name]
    return GroupedModules(
        f"model = torch.nn.{module.python}",
        f"auto model = torch::nn::{module.cpp};",
        setup=module.setup.value,
        signature="f(x) -> y",
        # The TorchScript of an LSTM has two overloads in the place of a forward.
        torchscript=name != "LSTM",
    )


def _training(name: str) -> GroupedBenchmark:
    training = TRAINING[name]
    return GroupedStmts(
        training.python,
        training.cpp,
        setup=Setup.TRAINING.value,
        signature=training.signature,
        torchscript=True,
        autograd=True,
        num_threads=(1, 2),
    )


_EMPTY = {
    # What is in them is undefined, so that there is nothing to compare.
    "no allocation": GroupedStmts("torch.empty(())", "torch::empty({0});", check=False),
    "with allocation": GroupedStmts("torch.empty((1,))", "torch::empty({1});", check=False),
    "overloads": GroupedVariants(
        cpp_block="""
        // @setup
        auto dtype = torch::kFloat32;
        auto maybe_dtype = c10::optTypeMetaToScalarType(torch::ones({1}).options().dtype_opt());

        // @TensorOptions overload
        torch::empty({0}, torch::TensorOptions{});
        torch::empty({0}, torch::TensorOptions().dtype(dtype).device(torch::kCPU).layout(torch::kStrided));
        torch::empty({0}, torch::kFloat32);

        // @Faithful overload
        at::empty({0}, {}, {}, {}, {}, {});
        at::empty({0}, dtype, {}, {}, {}, {});
        at::empty({0}, maybe_dtype, {}, {}, {}, {});
        """,
    ),
}

_MATH = GroupedVariants(
    *parse_stmts(r"""
        Python                                                          | C++
        --------------------------------------------------------------- | ----------------------------------------
        # @setup                                                        | // @setup
        torch.manual_seed(1381023)                                      | torch::manual_seed(1381023);
        x = torch.rand((4, 4))                                          | auto x = torch::rand({4, 4});
        y_float = torch.rand((4, 4))                                    | auto y_float = torch::rand({4, 4});
        y_vector = torch.rand((4, 1))                                   | auto y_vector = torch::rand({4, 1});
        y_int = torch.randint(0, 5, (4, 4), dtype=torch.int32)          | auto y_int = torch::randint(0, 5, {4, 4}, torch::kInt32);
        z = torch.zeros_like(x)                                         | auto z = torch::zeros_like(x);
                                                                        |
        # @add                                                          | // @add
        x += 1.0                                                        | x += 1.0;
        x += y_float                                                    | x += y_float;
        x += y_vector                                                   | x += y_vector;
        x += y_int                                                      | x += y_int;
        x + y_float                                                     | x + y_float;
        torch.add(x, y_float)                                           | torch::add(x, y_float);
        torch.add(x, y_float, out=z)                                    | torch::add_out(z, x, y_float);
                                                                        |
        # @multiply                                                     | // @multiply
        x *= 1.0                                                        | x *= 1.0;
        x *= y_float                                                    | x *= y_float;
        x *= y_vector                                                   | x *= y_vector;
        x *= y_int                                                      | x *= y_int;
        x * y_float                                                     | x * y_float;
        torch.mul(x, y_float)                                           | torch::mul(x, y_float);
        torch.mul(x, y_float, out=z)                                    | torch::mul_out(z, x, y_float);
                                                                        |
        # @equality                                                     | // @equality
        x == y_float                                                    | x == y_float;
        x == 1.0                                                        | x == 1.0;
        """)  # noqa: E501  side by side
)

_DATA_MOVEMENT = {
    "contiguous (trivial)": _stmts("x.contiguous()", "x.contiguous();"),
    "contiguous (non-trivial)": _stmts("x.t().contiguous()", "x.t().contiguous();"),
    "clone": _stmts("x.clone()", "x.clone();"),
    "copy_": GroupedStmts(
        "y.copy_(x)",
        "y.copy_(x);",
        setup=GroupedSetup(
            "x = torch.ones((4, 4)); y = torch.zeros((4, 4))",
            "auto x = torch::ones({4, 4}); auto y = torch::zeros({4, 4});",
        ),
    ),
    "zero_": _stmts("x.zero_()", "x.zero_();"),
    "RNG": _stmts("x.uniform_()", "x.uniform_();"),
}

_REDUCTION = {
    "max": _stmts("x.max()", "x.max();"),
    "sum": _stmts("x.sum()", "x.sum();"),
    "variance": _stmts("x.var(dim=0)", "x.var(at::IntArrayRef{0});"),
}

_INDEXING = GroupedVariants(
    *parse_stmts(r"""
        Python                                   | C++
        ---------------------------------------- | ----------------------------------------
        # @setup                                 | // @setup
        torch.manual_seed(66261034)              | torch::manual_seed(66261034);
        x = torch.randn(1, 1, 1)                 | auto x = torch::randn({1, 1, 1});
        y = torch.randn(1, 1, 1)                 | auto y = torch::randn({1, 1, 1});
                                                 |
        # @Tensor-Scalar                         | // @Tensor-Scalar
        x[0] = 1                                 | x.index_put_({0}, 1);
        x[0, 0] = 1                              | x.index_put_({0, 0}, 1);
        x[0, 0, 0] = 1                           | x.index_put_({0, 0, 0}, 1);
                                                 |
        # @Tensor-Scalar (Advanced)              | // @Tensor-Scalar (Advanced)
        x[...] = 1                               | x.index_put_({"..."}, 1);
        x[:] = 1                                 | x.index_put_({torch::indexing::Slice()}, 1);
        x[None] = 1                              | x.index_put_({torch::indexing::None}, 1);
        x[False] = 1                             | x.index_put_({false}, 1);
        x[True] = 1                              | x.index_put_({true}, 1);
                                                 |
        # @Tensor-Tensor                         | // @Tensor-Tensor
        x[0] = y[0]                              | x.index_put_({0}, y.index({0}));
        x[0, 0] = y[0, 0]                        | x.index_put_({0, 0}, y.index({0, 0}));
        x[0, 0, 0] = y[0, 0, 0]                  | x.index_put_({0, 0, 0}, y.index({0, 0, 0}));
                                                 |
        # @Tensor-Tensor (Advanced)              | // @Tensor-Tensor (Advanced)
        x[...] = y[...]                          | x.index_put_({"..."}, y.index({"..."}));
        x[:] = y[:]                              | x.index_put_({torch::indexing::Slice()}, y.index({torch::indexing::Slice()}));
        x[None] = y[None]                        | x.index_put_({torch::indexing::None}, y.index({torch::indexing::None}));
        x[False] = y[False]                      | x.index_put_({false}, y.index({false}));
        x[True] = y[True]                        | x.index_put_({true}, y.index({true}));
        """)  # noqa: E501  side by side
)

_METADATA = {
    "size": _stmts("x.size()[0]", "x.sizes()[0];"),
    "stride": _stmts("x.stride(0)", "x.stride(0);"),
    "as_strided": _stmts("torch.as_strided(x, (2, 3), (4, 1), 2)", "torch::as_strided(x, {2, 3}, {4, 1}, 2);"),
    "select": _stmts("torch.select(x, 1, 1)", "torch::select(x, 1, 1);"),
    "unsqueeze": _stmts("torch.unsqueeze(x, 0)", "torch::unsqueeze(x, 0);"),
    "view": _stmts("x.view(-1, 1)", "x.view({-1, 1});"),
    "transpose": _stmts("x.t()", "x.t();"),
    "reshape": _stmts("x.reshape((16, 1))", "x.reshape({16, 1});"),
}

_INFERENCE_MODE = GroupedVariants(
    cpp_block="""
    // @setup
    auto outsider = torch::ones({4, 4});
    c10::InferenceMode guard;
    auto insider = torch::ones({4, 4});

    // @View
    insider.view({16});

    // @Inplace
    insider.mul_(insider);

    // @Mixed
    insider + outsider;
    """,
)

BENCHMARKS = flatten(
    {
        "Empty": _EMPTY,
        "Pointwise": {"Math": _MATH, "Data movement": _DATA_MOVEMENT},
        "Reduction": _REDUCTION,
        "Indexing": _INDEXING,
        "Metadata and views": _METADATA,
        "nn Modules": {name: _module(name) for name in MODULES},
        "training": {name: _training(name) for name in TRAINING},
        "InferenceMode": _INFERENCE_MODE,
    }
)
