"""Files in a ZIP: the same files give the same bytes, whenever and wherever they are put together."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

# The first moment that the format knows.
BEGINNING = (1980, 1, 1, 0, 0, 0)
READABLE = 0o644 << 16


def pack_bundle(folder: str, files: Mapping[str, str | bytes]) -> bytes:
    """All files below one folder, so that unpacking makes no mess."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(f"{folder}/{name}", BEGINNING)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = READABLE
            # Characters that no encoding has, such as halves of pairs, are no reason to write nothing.
            archive.writestr(info, content.encode(errors="replace") if isinstance(content, str) else content)
    return packed.getvalue()
