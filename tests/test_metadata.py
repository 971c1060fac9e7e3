"""What an index of packages shows: the wheel's metadata, whose links and pictures work outside the repository."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RAW = "https://raw.githubusercontent.com"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """Of a wheel that is built with nothing but what is here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(wheel.read(name).decode())


def links(text: str) -> list[str]:
    """Where links and images lead; what stands in blocks of code is none."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r"^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE)


def find_addresses(metadata: Message) -> dict[str, str]:
    return dict(entry.split(", ", 1) for entry in metadata.get_all("Project-URL", []))


def test_every_link_and_picture_of_the_long_description_is_absolute(metadata: Message) -> None:
    found = links(str(metadata.get_payload()))
    assert len(found) > 10
    assert [link for link in found if not link.startswith(("https://", "#"))] == []
    assert "<img" not in str(metadata.get_payload())


def test_every_link_to_the_repository_names_a_file_and_a_heading_that_exist(metadata: Message) -> None:
    repository = find_addresses(metadata)["Repository"]
    owner = repository.removeprefix("https://github.com/")
    heads = (f"{repository}/blob/main/", f"{repository}/tree/main/", f"{RAW}/{owner}/main/")
    found = [*links(str(metadata.get_payload())), *find_addresses(metadata).values()]
    named = [link.removeprefix(head) for link in found for head in heads if link.startswith(head)]
    assert {"docs/comparing.md", "docs/images/flame.png", "CHANGELOG.md", "docs"} <= set(named)
    for name in named:
        path, _, heading = name.partition("#")
        assert (ROOT / path).exists(), name
        titles = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE) if heading else []
        slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in slugs, name
    elsewhere = [link for link in found if owner in link and not link.startswith((*heads, f"{repository}/issues"))]
    assert set(elsewhere) <= {repository}


def test_the_metadata_says_who_what_where_and_for_which_pythons(metadata: Message) -> None:
    assert {"Repository", "Documentation", "Changelog", "Issues"} <= find_addresses(metadata).keys()
    assert metadata["Author"] or metadata["Author-email"]
    assert "pytorch" in metadata["Keywords"]
    assert metadata["License-Expression"] == "BSD-3-Clause"
    classifiers = metadata.get_all("Classifier", [])
    for wanted in (
        "Development Status :: ",
        "Topic :: ",
        *(f"Programming Language :: Python :: 3.{n}" for n in range(10, 14)),
    ):
        assert any(one.startswith(wanted) for one in classifiers), wanted


def test_installing_comes_before_the_commands_of_the_repository(metadata: Message) -> None:
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", str(metadata.get_payload()), re.DOTALL | re.MULTILINE))
    commands = re.findall(r"^(pip install|make \w+|torchmark \w+)", blocks, re.MULTILINE)
    assert commands[0] == "pip install"
    assert {"make bench", "make test"} <= set(commands)
