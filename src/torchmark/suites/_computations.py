"""Computations that more than one suite measures, each in its own way: inputs, modules and what is trained."""

from __future__ import annotations

import enum
from typing import NamedTuple

from torchmark.define.options import GroupedSetup


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
