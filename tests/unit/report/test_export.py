from __future__ import annotations

import csv
import io
import json

import pytest

from torchmark import Compare, Measurement, TaskSpec

RESULTS = [
    Measurement(1, [1e-6, 3e-6, 2e-6], TaskSpec("a|b", "", label="L", description="d1")),
    Measurement(1, [8e-6], TaskSpec("c", "", label="L", description="d2", num_threads=2)),
]


def test_markdown_is_a_table_that_github_reads() -> None:
    assert Compare(RESULTS).to_markdown() == (
        "**L**\n\n"
        "| threads |  | d1 | d2 |\n"
        "| ---: | --- | ---: | ---: |\n"
        "| 1 | a\\|b | 2.0 |  |\n"
        "| 2 | c |  | 8.0 |\n"
        "\nTimes are in microseconds (us).\n"
    )


def test_markdown_shows_envs_only_where_they_differ() -> None:
    results = [Measurement(1, [1.0], TaskSpec("x", "", env=env)) for env in ("a_b", None)]
    lines = Compare(results).to_markdown().splitlines()
    assert lines[0] == "| threads | env |  |  |"
    assert lines[2:4] == ["| 1 | Unspecified env | x | 1.0 |", "| 1 | a\\_b | x | 1.0 |"]


def test_markdown_explains_its_warnings() -> None:
    comparison = Compare(RESULTS)
    assert "(!" not in comparison.to_markdown()
    comparison.highlight_warnings()
    text = comparison.to_markdown()
    assert "| 2.0 (! 50%) |" in text
    assert text.endswith("  \n(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n")


def test_markdown_makes_the_best_bold_when_colours_are_asked_for() -> None:
    comparison = Compare([Measurement(1, [t], TaskSpec(name, "")) for name, t in (("x", 1.0), ("y", 2.0))])
    assert "**" not in comparison.to_markdown()
    comparison.colorize()
    assert "| x | **1.0** |" in comparison.to_markdown()
    assert "| y | 2.0 |" in comparison.to_markdown()


@pytest.mark.parametrize("name", ["a\nb", "<script>", "`x`", "*x*", "\\|", "[l](u)"])
def test_no_name_breaks_out_of_its_markdown_cell(name: str) -> None:
    row = Compare([Measurement(1, [1.0], TaskSpec(name, ""))]).to_markdown().splitlines()[2]
    assert row.count(" | ") == 2
    assert "<script" not in row.replace("\\<", "")


def test_csv_reads_back_exactly() -> None:
    rows = list(csv.DictReader(io.StringIO(Compare(RESULTS).to_csv())))
    assert len(rows) == 2
    first = rows[0]
    assert (first["label"], first["num_threads"], first["env"], first["name"]) == ("L", "1", "", "a|b")
    assert float(first["median_s"]) == 2e-6
    assert float(first["p25_s"]) == 1.5e-6
    assert (first["samples"], rows[1]["std_s"]) == ("3", "")


def test_no_name_is_a_formula_in_a_csv() -> None:
    formulas = Measurement(1, [1e-6], TaskSpec("=1+1", "", label="-x"))
    (row,) = csv.DictReader(io.StringIO(Compare([formulas]).to_csv()))
    assert (row["label"], row["name"], row["median_s"]) == ("'-x", "'=1+1", "1e-06")


def test_dict_survives_json() -> None:
    data = Compare(RESULTS).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert (data["schema"], data["schema_version"]) == ("torchmark.compare", 1)
    (table,) = data["tables"]
    assert table["label"] == "L"
    assert {r["env"] for r in table["results"]} == {None}
    assert [(r["description"], r["num_threads"], r["median_s"]) for r in table["results"]] == [
        ("d1", 1, 2e-6),
        ("d2", 2, 8e-6),
    ]


def test_nothing_exports_as_nothing() -> None:
    empty = Compare([])
    assert str(empty) == ""
    assert empty.to_markdown() == ""
    assert empty.to_csv().count("\n") == 1
    assert empty.to_dict()["tables"] == []
