from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.mock_engine import measure_implementations
from torchmark import Compare, Measurement, TaskSpec
from torchmark.report.text.grid import Rank, rank_value

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


GOLDEN = Path(__file__).parents[3] / "golden"


def rstripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


@pytest.fixture(scope="module")
def implementations() -> list[Measurement]:
    return measure_implementations()


@pytest.mark.parametrize("style", ["plain", "trimmed", "columnwise", "rowwise"])
def test_the_four_golden_tables(implementations: list[Measurement], style: str) -> None:
    comparison = Compare(implementations)
    if style != "plain":
        comparison.trim_significant_figures()
    if style.endswith("wise"):
        comparison.colorize(rowwise=style == "rowwise")
    assert rstripped(str(comparison)) == (GOLDEN / f"compare_{style}.txt").read_text()


def test_the_plain_golden_table_is_the_one_that_users_know() -> None:
    rows = (GOLDEN / "compare_plain.txt").read_text().splitlines()
    assert rows[3:6] == [
        "      overhead_optimized     |    1.3     |     3.0     |     17.4     |     4174.4     |     4174.4",
        "      compute_optimized      |    3.1     |     4.0     |     11.2     |     2099.3     |     2099.3",
        "      special_case (square)  |    1.1     |             |      7.5     |                |     1674.7",
    ]


ENVS_AND_WARNINGS = """\
[------------------ L -------------------]
                |      d1     |      d2
1 threads: -------------------------------
  (branch)  a   |  2 (! 41%)  |  2 (! 41%)
            bb  |  2 (! 41%)  |  2 (! 41%)
  (master)  a   |  2 (! 41%)  |  2 (! 41%)
            bb  |  2 (! 41%)  |  2 (! 41%)
4 threads: -------------------------------
  (branch)  a   |  7 (! 41%)  |  7 (! 41%)
            bb  |  7 (! 41%)  |  7 (! 41%)
  (master)  a   |  7 (! 41%)  |  7 (! 41%)
            bb  |  7 (! 41%)  |  7 (! 41%)

Times are in microseconds (us).
(! XX%) Measurement has high variance, where XX is the IQR / median * 100.
"""


def test_envs_threads_trimming_and_warnings_together() -> None:
    # quartiles 1.5 and 2.2 around 1.7 (and 4.1 times that): 0.7 / 1.7 = 41 %
    results = [
        Measurement(1, [t * scale * 1e-6 for t in (1.3, 1.5, 1.7, 2.2, 2.4)], spec)
        for threads, scale in ((1, 1.0), (4, 4.1))
        for env in ("master", "branch")
        for name in ("a", "bb")
        for column in ("d1", "d2")
        for spec in [TaskSpec(name, "", label="L", description=column, env=env, num_threads=threads)]
    ]
    comparison = Compare(results)
    comparison.trim_significant_figures()
    comparison.highlight_warnings()
    assert rstripped(str(comparison)) == ENVS_AND_WARNINGS


@pytest.mark.parametrize(
    ("value", "best", "rank"),
    [
        (1.0, 1.0, Rank.BEST),
        (1.01, 1.0, Rank.BEST),
        (190e-9, 100e-9, Rank.BEST),  # within 100 ns
        (1.011, 1.0, Rank.GOOD),
        (1.1, 1.0, Rank.GOOD),
        (1.11, 1.0, Rank.PLAIN),
        (1.99, 1.0, Rank.PLAIN),
        (2.0, 1.0, Rank.BAD),
        (4.99, 1.0, Rank.BAD),
        (5.0, 1.0, Rank.VERY_BAD),
    ],
)
def test_ranks(value: float, best: float, rank: Rank) -> None:
    assert rank_value(value, best) is rank


def test_columnwise_colours_do_not_compare_across_thread_counts() -> None:
    slow = Measurement(1, [1.0], TaskSpec("x", "", num_threads=1))
    fast = Measurement(1, [0.1], TaskSpec("x", "", num_threads=2))
    comparison = Compare([slow, fast])
    comparison.colorize()
    assert str(comparison).count(Rank.BEST.value) == 2


def test_an_env_without_a_name_leaves_its_place_free() -> None:
    results = [Measurement(1, [1.0], TaskSpec("x", "", env=env)) for env in ("", "b")]
    assert [line[:9] for line in str(Compare(results)).splitlines()[3:5]] == ["       x ", "  (b)  x "]


def test_a_row_name_of_several_lines_does_not_break_the_table() -> None:
    lines = str(Compare([Measurement(1, [1.0], TaskSpec("x = 1\ny = 2", "pass"))])).splitlines()
    assert lines[3].startswith("      x = 1 ...")
    assert len({len(line) for line in lines[:4]}) == 1


def test_a_measurement_without_samples_leaves_its_cell_blank() -> None:
    results = [Measurement(1, [], TaskSpec("x", "")), Measurement(1, [2.0], TaskSpec("y", ""))]
    lines = rstripped(str(Compare(results))).splitlines()
    assert lines[3] == "      x  |"
    assert lines[4] == "      y  |  2.0"


def test_only_measurements_without_samples_still_make_a_table() -> None:
    assert "x" in str(Compare([Measurement(1, [], TaskSpec("x", ""))]))


def test_medians_of_zero_are_shown() -> None:
    comparison = Compare([Measurement(1, [0.0], TaskSpec("x", ""))])
    comparison.trim_significant_figures()
    assert "0" in str(comparison).splitlines()[3]
