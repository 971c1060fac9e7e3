"""The standard suite: 181 cases that cover what every PyTorch program does.

Labels and their order are the identity of results, also of those that were taken elsewhere: they must not change.
Texts may be improved.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from torchmark.define.expand import flatten
from torchmark.define.groups import GroupedBenchmark, GroupedModules, GroupedStmts, GroupedVariants
from torchmark.define.options import GroupedSetup
from torchmark.define.signature import parse_stmts


class Setup(enum.Enum):
    """Inputs that several groups use."""

    TRIVIAL_2D = GroupedSetup("x = torch.ones((4, 4))", "auto x = torch::ones({4, 4});")
    TRIVIAL_3D = GroupedSetup("x = torch.ones((4, 4, 4))", "auto x = torch::ones({4, 4, 4});")
    TRIVIAL_4D = GroupedSetup("x = torch.ones((4, 4, 4, 4))", "auto x = torch::ones({4, 4, 4, 4});")
    TRAINING = GroupedSetup(
        """
        # Inputs
        x = torch.ones(1)
        y = torch.ones(1)

        # Weights
        w0 = torch.ones(1, requires_grad=True)
        w1 = torch.ones(1, requires_grad=True)
        w2 = torch.ones(2, requires_grad=True)
        """,
        """
        // Inputs
        auto x = torch::ones({1});
        auto y = torch::ones({1});

        // Weights
        auto w0 = torch::ones({1}, torch::requires_grad());
        auto w1 = torch::ones({1}, torch::requires_grad());
        auto w2 = torch::ones({2}, torch::requires_grad());
        """,
    )


class Module(NamedTuple):
    """How a module is made in either language, and what it is called on."""

    python: str
    cpp: str
    setup: Setup


MODULES = {
    "BatchNorm2d": Module("BatchNorm2d(4)", "BatchNorm2d(4)", Setup.TRIVIAL_4D),
    "GroupNorm": Module("GroupNorm(2, 4)", "GroupNorm(2, 4)", Setup.TRIVIAL_4D),
    "LayerNorm": Module("LayerNorm(4)", "LayerNorm(torch::nn::LayerNormOptions({4}))", Setup.TRIVIAL_4D),
    "Conv1d": Module("Conv1d(4, 4, 1)", "Conv1d(4, 4, 1)", Setup.TRIVIAL_3D),
    "Conv2d": Module("Conv2d(4, 4, 1)", "Conv2d(4, 4, 1)", Setup.TRIVIAL_4D),
    "MaxPool2d": Module("MaxPool2d(2)", "MaxPool2d(2)", Setup.TRIVIAL_4D),
    "ReLU": Module("ReLU()", "ReLU()", Setup.TRIVIAL_2D),
    "Sigmoid": Module("Sigmoid()", "Sigmoid()", Setup.TRIVIAL_2D),
    "Linear": Module("Linear(4, 2)", "Linear(4, 2)", Setup.TRIVIAL_2D),
    "LSTM": Module("LSTM(4, 2)", "LSTM(4, 2)", Setup.TRIVIAL_3D),
}


class Training(NamedTuple):
    """A forward pass with weights, on the inputs of `Setup.TRAINING`."""

    python: str
    cpp: str
    signature: str


TRAINING = {
    "simple": Training(
        """
        a0 = torch.nn.functional.relu(x * w0)
        y = a0 * w1
        """,
        """
        auto a0 = torch::nn::functional::relu(x * w0);
        auto y = a0 * w1;
        """,
        "f(x, w0, w1) -> y",
    ),
    "ensemble": Training(
        """
        a0 = torch.nn.functional.gelu(x * w0)
        a1 = torch.nn.functional.prelu(y, w1)
        z = torch.nn.functional.normalize(torch.cat([a0, a1]), p=2.0, dim=0).dot(w2)
        """,
        """
        auto a0 = torch::nn::functional::gelu(x * w0);
        auto a1 = torch::nn::functional::prelu(y, w1);
        auto options = torch::nn::functional::NormalizeFuncOptions().p(2.0).dim(0);
        auto z = torch::nn::functional::normalize(torch::cat({a0, a1}), options).dot(w2);
        """,
        "f(x, y, w0, w1, w2) -> z",
    ),
}

# Variants of a group must compute the same.
CHECK = True


def _stmts(python: str, cpp: str, setup: Setup = Setup.TRIVIAL_2D) -> GroupedBenchmark:
    return GroupedStmts(python, cpp, setup=setup.value)


def _module(name: str, module: Module) -> GroupedBenchmark:
    return GroupedModules(
        f"model = torch.nn.{module.python}",
        f"auto model = torch::nn::{module.cpp};",
        setup=module.setup.value,
        signature="f(x) -> y",
        # The TorchScript of an LSTM has two overloads in the place of a forward.
        torchscript=name != "LSTM",
    )


def _training(training: Training) -> GroupedBenchmark:
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
        "nn Modules": {name: _module(name, one) for name, one in MODULES.items()},
        "training": {name: _training(one) for name, one in TRAINING.items()},
        "InferenceMode": _INFERENCE_MODE,
    }
)
