from __future__ import annotations

import sys

import pytest

from torchmark import Compare, Measurement, TaskSpec


def made(t: float, **labels: str | int | None) -> Measurement:
    return Measurement(1, [t], TaskSpec("x", "pass", **labels))  # type: ignore[arg-type]


def test_only_measurements_are_taken() -> None:
    with pytest.raises(ValueError, match=r"Expected an instance of `Measurement`, got <class 'int'> instead\."):
        Compare([1])  # type: ignore[list-item]


def test_a_refused_list_leaves_the_comparison_as_it_was() -> None:
    comparison = Compare([made(1.0)])
    before = str(comparison)
    with pytest.raises(ValueError, match="Expected an instance"):
        comparison.extend_results([made(2.0, description="d"), None])  # type: ignore[list-item]
    assert str(comparison) == before


def test_results_can_come_later_and_replicates_merge() -> None:
    comparison = Compare([made(1.0)])
    comparison.extend_results([made(3.0)])
    assert "2.0" in str(comparison)


def test_results_without_description_make_a_column_without_a_name() -> None:
    text = str(Compare([made(1.0), made(2.0, description="d")]))
    assert text.splitlines()[1].split("|")[1].strip() == ""
    assert text.splitlines()[3].count("|") == 2


def test_envs_may_be_given_for_some_only() -> None:
    text = str(Compare([made(1.0, env="branch"), made(2.0)]))
    assert "(branch)" in text
    assert "(Unspecified env)" in text


def test_a_table_for_each_label_with_a_blank_line_between() -> None:
    text = str(Compare([made(1.0, label="a"), made(1.0, label="b")]))
    assert text.count("Times are in seconds (s).\n") == 2
    assert "(s).\n\n[" in text


def coloured() -> Compare:
    comparison = Compare([made(1.0)])
    comparison.colorize()
    return comparison


def test_text_has_the_colours_that_were_asked_for() -> None:
    assert "\033[92m" in str(coloured())


def test_text_has_no_colours_where_the_user_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in str(coloured())


def test_printing_elsewhere_than_on_a_terminal_has_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    coloured().print()
    assert "\033" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colours_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    coloured().print()
    assert ("\033" in capsys.readouterr().out) is expected
