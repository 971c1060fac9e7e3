"""The modern suite: what matters in PyTorch 2.x beyond the standard suite.

It covers torch.compile beside eager execution, attention, normalisation, embeddings, losses, optimisers, casts, views
in inference mode and small matrix products. Inputs are small: counting instructions is slow.
"""

from __future__ import annotations

from torchmark.define.expand import flatten
from torchmark.define.groups import GroupedBenchmark, GroupedModules, GroupedStmts, GroupedVariants
from torchmark.define.options import GroupedSetup
from torchmark.define.signature import parse_stmts
from torchmark.suites.standard import MODULES, TRAINING, Setup

# Variants of a group must compute the same.
CHECK = True

_QKV = GroupedSetup(
    *parse_stmts("""
    Python                                              | C++
    --------------------------------------------------- | ----------------------------------------
    torch.manual_seed(20221202)                         | torch::manual_seed(20221202);
    q = torch.randn((1, 2, 16, 16), requires_grad=True) | auto q = torch::randn({1, 2, 16, 16}, torch::requires_grad());
    k = torch.randn((1, 2, 16, 16), requires_grad=True) | auto k = torch::randn({1, 2, 16, 16}, torch::requires_grad());
    v = torch.randn((1, 2, 16, 16), requires_grad=True) | auto v = torch::randn({1, 2, 16, 16}, torch::requires_grad());
    """)
)
_ROWS = GroupedSetup(
    *parse_stmts("""
    Python                                       | C++
    -------------------------------------------- | ----------------------------------------
    torch.manual_seed(20221202)                  | torch::manual_seed(20221202);
    x = torch.randn((8, 64), requires_grad=True) | auto x = torch::randn({8, 64}, torch::requires_grad());
    weight = torch.ones(64, requires_grad=True)  | auto weight = torch::ones({64}, torch::requires_grad());
    """)
)
_TABLE = GroupedSetup(
    *parse_stmts("""
    Python                                             | C++
    -------------------------------------------------- | ----------------------------------------
    torch.manual_seed(20221202)                        | torch::manual_seed(20221202);
    weight = torch.randn((64, 16), requires_grad=True) | auto weight = torch::randn({64, 16}, torch::requires_grad());
    index = torch.randint(0, 64, (8, 4))               | auto index = torch::randint(0, 64, {8, 4}, torch::kInt64);
    """)
)
_LOGITS = GroupedSetup(
    *parse_stmts("""
    Python                                        | C++
    --------------------------------------------- | ----------------------------------------
    torch.manual_seed(20221202)                   | torch::manual_seed(20221202);
    x = torch.randn((16, 32), requires_grad=True) | auto x = torch::randn({16, 32}, torch::requires_grad());
    classes = torch.randint(0, 32, (16,))         | auto classes = torch::randint(0, 32, {16}, torch::kInt64);
    probabilities = torch.full((16, 32), 1 / 32)  | auto probabilities = torch::full({16, 32}, 1.0 / 32);
    """)
)


def _attention(causal: bool) -> GroupedBenchmark:
    return GroupedStmts(
        f"y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal={causal}).sum()",
        f"auto y = torch::scaled_dot_product_attention(q, k, v, {{}}, 0.0, {str(causal).lower()}).sum();",
        setup=_QKV,
        signature="f(q, k, v) -> y",
        autograd=True,
    )


_ATTENTION = {
    "training": {"causal": _attention(True), "not causal": _attention(False)},
    "inference": GroupedVariants(
        *parse_stmts(r"""
        Python                                                                       | C++
        ---------------------------------------------------------------------------- | ----------------------------------------
        # @setup                                                                     | // @setup
        torch.manual_seed(20221202)                                                  | torch::manual_seed(20221202);
        q = torch.randn((1, 2, 16, 16))                                              | auto q = torch::randn({1, 2, 16, 16});
        k = torch.randn((1, 2, 16, 16))                                              | auto k = torch::randn({1, 2, 16, 16});
        v = torch.randn((1, 2, 16, 16))                                              | auto v = torch::randn({1, 2, 16, 16});
        mask = torch.ones((16, 16), dtype=torch.bool).tril()                         | auto mask = torch::ones({16, 16}, torch::kBool).tril();
                                                                                     |
        # @causal                                                                    | // @causal
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)    | torch::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
        # @not causal                                                                | // @not causal
        torch.nn.functional.scaled_dot_product_attention(q, k, v)                    | torch::scaled_dot_product_attention(q, k, v);
        # @mask                                                                      | // @mask
        torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)              | torch::scaled_dot_product_attention(q, k, v, mask);
        """)  # noqa: E501  side by side
    ),
}

_NORMALISATION = {
    "rms_norm": GroupedStmts(
        "y = torch.nn.functional.rms_norm(x, (64,), weight).sum()",
        "auto y = torch::rms_norm(x, {64}, weight).sum();",
        setup=_ROWS,
        signature="f(x, weight) -> y",
        autograd=True,
    ),
    # As models wrote it before there was an operator, and what torch.compile is used for.
    "RMS norm of its parts": GroupedStmts(
        "y = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight).sum()",
        "auto y = (x * torch::rsqrt(x.pow(2).mean(-1, true) + 1e-6) * weight).sum();",
        setup=_ROWS,
        signature="f(x, weight) -> y",
        autograd=True,
        compile=True,
        tags=("compile",),
    ),
}

_EMBEDDING = {
    "embedding": GroupedStmts(
        "y = torch.nn.functional.embedding(index, weight).sum()",
        "auto y = torch::embedding(weight, index).sum();",
        setup=_TABLE,
        signature="f(index, weight) -> y",
        autograd=True,
    ),
    "embedding_bag": GroupedStmts(
        'y = torch.nn.functional.embedding_bag(index, weight, mode="sum").sum()',
        """
        auto options = torch::nn::functional::EmbeddingBagFuncOptions().mode(torch::kSum);
        auto y = torch::nn::functional::embedding_bag(index, weight, options).sum();
        """,
        setup=_TABLE,
        signature="f(index, weight) -> y",
        autograd=True,
    ),
}


def _cross_entropy(target: str) -> GroupedBenchmark:
    return GroupedStmts(
        f"loss = torch.nn.functional.cross_entropy(x, {target})",
        f"auto loss = torch::nn::functional::cross_entropy(x, {target});",
        setup=_LOGITS,
        signature=f"f(x, {target}) -> loss",
        autograd=True,
    )


_LOSS = {"cross-entropy": {target: _cross_entropy(target) for target in ("classes", "probabilities")}}


_GRADIENTS = parse_stmts("""
    Python                                        | C++
    --------------------------------------------- | ----------------------------------------
    w0 = torch.ones((16, 16), requires_grad=True) | auto w0 = torch::ones({16, 16}, torch::requires_grad());
    w1 = torch.ones(16, requires_grad=True)       | auto w1 = torch::ones({16}, torch::requires_grad());
    w0.grad = torch.full((16, 16), -1.0)          | w0.mutable_grad() = torch::full({16, 16}, -1.0);
    w1.grad = torch.full((16,), -1.0)             | w1.mutable_grad() = torch::full({16}, -1.0);
    """)


def _optimiser(python: str, cpp: str | None = None) -> GroupedBenchmark:
    """A step that is always the same: weights grow away from zero, averages settle at the gradient.

    The first step makes the state, hence it belongs to the setup.
    """
    py_setup = f"{_GRADIENTS[0]}\noptimizer = torch.optim.{python}\noptimizer.step()"
    if cpp is None:
        return GroupedStmts("loss = optimizer.step()", setup=GroupedSetup(py_setup))
    cpp_setup = f"{_GRADIENTS[1]}\ntorch::optim::{cpp};\noptimizer.step();"
    return GroupedStmts(
        "loss = optimizer.step()", "auto loss = optimizer.step();", setup=GroupedSetup(py_setup, cpp_setup)
    )


def _optimisers(name: str, python: str, cpp: str) -> dict[str, GroupedBenchmark]:
    call = f"{name}([w0, w1], {python}"
    return {
        # The only way there is in C++.
        "for-loop": _optimiser(
            f"{call}, foreach=False, fused=False)", f"{name} optimizer({{w0, w1}}, torch::optim::{name}Options{cpp})"
        ),
        "foreach": _optimiser(f"{call}, foreach=True)"),
        "fused": _optimiser(f"{call}, fused=True)"),
    }


# The powers of the betas that Adam corrects its averages with become denormal, but with 0.999 only after 700000 steps.
_ADAM = ("lr=1e-3, betas=(0.999, 0.999)", "(1e-3).betas({0.999, 0.999})")

_OPTIMISER = {
    "SGD": _optimisers("SGD", "lr=1e-3, momentum=0.9", "(1e-3).momentum(0.9)"),
    "Adam": _optimisers("Adam", *_ADAM),
    "AdamW": _optimisers("AdamW", *_ADAM),
}

_CASTS = GroupedVariants(
    *parse_stmts(r"""
        Python                                   | C++
        ---------------------------------------- | ----------------------------------------
        # @setup                                 | // @setup
        x = torch.linspace(0, 255, 256)          | auto x = torch::linspace(0, 255, 256);
        brain = x.to(torch.bfloat16)             | auto brain = x.to(torch::kBFloat16);
        half = x.to(torch.float16)               | auto half = x.to(torch::kFloat16);
        whole = x.to(torch.int64)                | auto whole = x.to(torch::kInt64);
                                                 |
        # @float32 to bfloat16                   | // @float32 to bfloat16
        x.to(torch.bfloat16)                     | x.to(torch::kBFloat16);
        # @float32 to float16                    | // @float32 to float16
        x.to(torch.float16)                      | x.to(torch::kFloat16);
        # @float32 to int64                      | // @float32 to int64
        x.to(torch.int64)                        | x.to(torch::kInt64);
        # @no-op                                 | // @no-op
        x.to(torch.float32)                      | x.to(torch::kFloat32);
        # @bfloat16 to float32                   | // @bfloat16 to float32
        brain.to(torch.float32)                  | brain.to(torch::kFloat32);
        # @float16 to float32                    | // @float16 to float32
        half.to(torch.float32)                   | half.to(torch::kFloat32);
        # @int64 to float32                      | // @int64 to float32
        whole.to(torch.float32)                  | whole.to(torch::kFloat32);
        """)
)

# The guard is held in a variable: the mode is on for as long as the statement is measured, and off behind it.
_VIEWS = GroupedVariants(
    *parse_stmts(r"""
        Python                                   | C++
        ---------------------------------------- | ----------------------------------------
        # @setup                                 | // @setup
        guard = torch.inference_mode()           | c10::InferenceMode guard;
        guard.__enter__()                        |
        x = torch.linspace(0, 15, 16)            | auto x = torch::linspace(0, 15, 16);
        x = x.view(4, 4)                         | x = x.view({4, 4});
                                                 |
        # @view                                  | // @view
        x.view(16)                               | x.view({16});
        # @reshape                               | // @reshape
        x.reshape((2, 8))                        | x.reshape({2, 8});
        # @select                                | // @select
        x.select(1, 1)                           | x.select(1, 1);
        # @slice                                 | // @slice
        x[1:3]                                   | x.slice(0, 1, 3);
        # @transpose                             | // @transpose
        x.t()                                    | x.t();
        # @permute                               | // @permute
        x.permute((1, 0))                        | x.permute({1, 0});
        # @unsqueeze                             | // @unsqueeze
        x.unsqueeze(0)                           | x.unsqueeze(0);
        # @expand                                | // @expand
        x.expand((2, 4, 4))                      | x.expand({2, 4, 4});
        """)
)


def _products(n: int, dtype: str, cpp_dtype: str) -> dict[str, GroupedBenchmark]:
    setup = GroupedSetup(
        f"""
        torch.manual_seed(20221202)
        x = torch.rand(({n}, {n}), dtype=torch.{dtype})
        y = torch.rand(({n}, {n}), dtype=torch.{dtype})
        bias = torch.rand({n}, dtype=torch.{dtype})
        xs = torch.rand((2, {n}, {n}), dtype=torch.{dtype})
        ys = torch.rand((2, {n}, {n}), dtype=torch.{dtype})
        """,
        f"""
        torch::manual_seed(20221202);
        auto x = torch::rand({{{n}, {n}}}, torch::{cpp_dtype});
        auto y = torch::rand({{{n}, {n}}}, torch::{cpp_dtype});
        auto bias = torch::rand({{{n}}}, torch::{cpp_dtype});
        auto xs = torch::rand({{2, {n}, {n}}}, torch::{cpp_dtype});
        auto ys = torch::rand({{2, {n}, {n}}}, torch::{cpp_dtype});
        """,
    )
    stmts = {"mm": "mm(x, y)", "addmm": "addmm(bias, x, y)", "bmm": "bmm(xs, ys)"}
    products = {name: GroupedStmts(f"torch.{call}", f"torch::{call};", setup=setup) for name, call in stmts.items()}
    linear = GroupedStmts("torch.nn.functional.linear(x, y, bias)", "torch::linear(x, y, bias);", setup=setup)
    return {**products, "linear": linear}


_MATMUL = {
    (dtype, f"{size} x {size}"): _products(size, dtype, cpp_dtype)
    for dtype, cpp_dtype in (("float32", "kFloat32"), ("bfloat16", "kBFloat16"))
    for size in (1, 16, 64)
}


def _compiled_module(model: str, setup: GroupedSetup, *, autograd: bool = False) -> GroupedBenchmark:
    """A module in Python alone: the standard suite has them in C++."""
    return GroupedModules(
        f"model = {model}", setup=setup, signature="f(x) -> y", autograd=autograd, compile=True, tags=("compile",)
    )


_COMPILED_MODULES = {
    # torch.compile leaves an LSTM to the interpreter.
    **{
        name: _compiled_module(f"torch.nn.{one.python}", one.setup.value)
        for name, one in MODULES.items()
        if name != "LSTM"
    },
    # One row and one column: a backward pass starts from one number.
    "MLP": _compiled_module(
        "torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))",
        GroupedSetup("torch.manual_seed(20221202)\nx = torch.randn((1, 32))"),
        autograd=True,
    ),
}

_COMPILED_TRAINING = {
    name: GroupedStmts(
        one.python,
        one.cpp,
        setup=Setup.TRAINING.value,
        signature=one.signature,
        autograd=True,
        compile=True,
        tags=("compile",),
    )
    for name, one in TRAINING.items()
}

BENCHMARKS = flatten(
    {
        "Attention": _ATTENTION,
        "Normalisation": _NORMALISATION,
        "Embedding": _EMBEDDING,
        "Loss": _LOSS,
        "Optimiser": _OPTIMISER,
        "Casts": _CASTS,
        "Inference mode views": _VIEWS,
        "Matmul": _MATMUL,
        "Compiled modules": _COMPILED_MODULES,
        "Compiled training": _COMPILED_TRAINING,
    }
)
