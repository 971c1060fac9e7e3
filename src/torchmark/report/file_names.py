"""Names of files for cases: letters, digits and dashes, the same for the same cases, and no two alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from torchmark.model.case import Case
from torchmark.report.variants import Variants

# Most file systems take 255 bytes; what is put before and behind has to fit as well.
LONGEST = 120


def make_slug(text: str) -> str:
    """A text as the name of a file.

    >>> make_slug("torch.add(x, y) / SubTensor, C++")
    'torch-add-x-y-subtensor-cpp'
    """
    plain = unicodedata.normalize("NFKD", text.replace("C++", "cpp")).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-")[:LONGEST].rstrip("-") or "case"


def name_files(cases: Sequence[Case]) -> dict[Case, str]:
    """What the file of each case is called, without what it ends with. Those that would be alike are numbered."""
    variants = Variants(cases)
    taken: set[str] = set()
    names: dict[Case, str] = {}
    for case in dict.fromkeys(cases):
        slug = name = make_slug(variants.name(case))
        number = 1
        while name in taken:
            number += 1
            name = f"{slug}-{number}"
        taken.add(name)
        names[case] = name
    return names
