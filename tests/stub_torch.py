"""A torch with hardly anything in it: real compilers are done with its headers in no time."""

from __future__ import annotations

from pathlib import Path

from torchmark.model.environment import Sdk

HEADERS = {
    "c10/util/Exception.h": """
#pragma once
#include <stdexcept>
namespace c10 {
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
    const char *what_without_backtrace() const { return what(); }
};
}
""",
    "torch/csrc/api/include/torch/types.h": """
#pragma once
#include <string>
namespace torch {
struct Tensor { int value = 1; int add(int n) const { return value + n; } };
template <class T> T twice(T x) { static_assert(sizeof(T) > 1, "too small to be doubled"); return x + x; }
}
""",
    "torch/csrc/api/include/torch/utils.h": "#pragma once\n",
    "torch/csrc/api/include/torch/torch.h": """
#pragma once
#include <torch/types.h>
namespace torch::nn { struct Linear {}; }
""",
    "torch/script.h": "#pragma once\nnamespace torch::jit { struct Module {}; }\n",
}


def make_stub_torch(folder: Path, flags: str = "-O2") -> Sdk:
    for name, text in HEADERS.items():
        path = folder / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "lib").mkdir(exist_ok=True)
    return Sdk(
        python="/stub/python",
        folder=str(folder),
        version="0.1",
        git_version="abc",
        cxx11_abi=True,
        cxx_flags=flags,
        cxx_standard=17,
        python_include=None,
    )
