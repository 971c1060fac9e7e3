from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.grid import Grid, arrange, ordered_unique
from torchmark.analysis.summarise import summarise
from torchmark.model.task import TaskSpec


def grid_of(*specs: TaskSpec) -> Grid:
    (grid,) = arrange([(spec, summarise([float(i + 1)])) for i, spec in enumerate(specs)])
    return grid


def names(grid: Grid) -> list[str]:
    return [row.name for row in grid.rows]


def test_nothing_gives_no_grid() -> None:
    assert arrange([]) == ()


def test_labels_are_grids_in_the_order_given() -> None:
    entries = [(TaskSpec("x", "", label=label), None) for label in ("b", None, "a", "b")]
    assert [grid.label for grid in arrange(entries)] == ["b", None, "a"]


def test_rows_are_sorted_by_threads_and_env_but_not_by_name() -> None:
    grid = grid_of(
        TaskSpec("z", "", num_threads=2),
        TaskSpec("z", "", env="b"),
        TaskSpec("z", "", env="a"),
        TaskSpec("a", "", env="a"),
    )
    assert [(r.num_threads, r.env, r.name) for r in grid.rows] == [
        (1, "a", "z"),
        (1, "a", "a"),
        (1, "b", "z"),
        (2, None, "z"),
    ]


def test_missing_cells_are_none() -> None:
    grid = grid_of(TaskSpec("x", "", description="1"), TaskSpec("y", "", description="2"))
    assert [[cell is None for cell in row.cells] for row in grid.rows] == [[False, True], [True, False]]


def test_different_statements_with_one_sub_label_get_rows_named_by_statement() -> None:
    grid = grid_of(TaskSpec("x + y", "", sub_label="add"), TaskSpec("x.add(y)", "", sub_label="add"))
    assert names(grid) == ["add: x + y", "add: x.add(y)"]


def test_different_setups_get_rows_named_by_setup() -> None:
    grid = grid_of(TaskSpec("x", "x = 1"), TaskSpec("x", "x = 2"))
    assert names(grid) == ["x (setup: x = 1)", "x (setup: x = 2)"]


def test_long_or_equal_texts_are_numbered() -> None:
    grid = grid_of(TaskSpec("x\ny", "", sub_label="s"), TaskSpec("x\nz", "", sub_label="s"))
    assert names(grid) == ["s [1]", "s [2]"]
    grid = grid_of(TaskSpec("x", "", sub_label="x"), TaskSpec("x", ""))
    assert names(grid) == ["x [1]", "x [2]"]


def test_a_name_made_to_tell_rows_apart_does_not_meet_another_row() -> None:
    grid = grid_of(
        TaskSpec("1", "", sub_label="s"), TaskSpec("2", "", sub_label="s"), TaskSpec("x", "", sub_label="s: 1")
    )
    assert [row.cells[0].median for row in grid.rows if row.cells[0]] == [1.0, 2.0, 3.0]


def test_one_row_may_use_another_statement_for_each_column() -> None:
    grid = grid_of(
        TaskSpec("f(1)", "", sub_label="f", description="1"), TaskSpec("f(2)", "", sub_label="f", description="2")
    )
    assert names(grid) == ["f"]


def test_an_env_that_is_called_like_no_env_is_kept_apart() -> None:
    grid = grid_of(TaskSpec("x", "", env="Unspecified env"), TaskSpec("x", ""))
    assert [row.cells[0].median for row in grid.rows if row.cells[0]] == [1.0, 2.0]


TEXT = st.sampled_from(["", "a", "b", "a\nb"])
MAYBE = st.one_of(st.none(), TEXT)
SPECS = st.builds(
    TaskSpec,
    TEXT,
    TEXT,
    TEXT,
    label=MAYBE,
    sub_label=MAYBE,
    description=MAYBE,
    env=MAYBE,
    num_threads=st.integers(1, 2),
)


@given(st.lists(SPECS, unique=True, max_size=25))
def test_no_result_is_ever_lost(specs: list[TaskSpec]) -> None:
    grids = arrange([(spec, summarise([float(i)])) for i, spec in enumerate(specs)])
    cells = itertools.chain.from_iterable(row.cells for grid in grids for row in grid.rows)
    assert sorted(cell.median for cell in cells if cell is not None) == [float(i) for i in range(len(specs))]


def test_ordered_unique_keeps_the_first() -> None:
    assert ordered_unique([3, 1, 3, 2, 1]) == [3, 1, 2]
    assert ordered_unique([]) == []
