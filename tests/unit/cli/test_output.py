from __future__ import annotations

import dataclasses
import json
import os
import re
import warnings
from pathlib import Path

import click
import pytest

from tests.stored_runs import make_run
from torchmark.cli import program
from torchmark.cli.main import main
from torchmark.cli.output import check_output, echo, write_text
from torchmark.errors import StoreError, UsageError
from torchmark.model.environment import Environment
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.run import Run
from torchmark.store.documents import export_run
from torchmark.store.runs import open_store

EVIL = "\x1b]0;PWN\x07\u202e\x9b\n::error title=x::y\n  ::add-mask::z ##[group]a ##vso[task.complete]b\r"


def assert_harmless(text: str) -> None:
    assert not set(text) & set("\x1b\x07\u202e\x9b\r\x00")
    for line in text.splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)


def spoil(run: Run) -> Run:
    """The same run in which names, versions, processors and failures are a stranger's text."""
    cases = {
        case: dataclasses.replace(case, label=(*case.label[:-1], case.label[-1] + EVIL)) for case in run.plan.cases
    }
    targets = {one: dataclasses.replace(one, name=one.name + EVIL) for one in run.plan.targets}
    outcomes = []
    for one in run.outcomes:
        order = dataclasses.replace(one.order, case=cases[one.order.case], target=targets[one.order.target])
        environment = spoil_environment(one.environment) if one.environment else None
        result = one.result
        if isinstance(result, Failure):
            result = Failure(FailureKind.RAISED, EVIL, EVIL, EVIL)
        outcomes.append(dataclasses.replace(one, order=order, environment=environment, result=result))
    host = dataclasses.replace(run.info.host, cpu_model=EVIL)
    return dataclasses.replace(
        run,
        info=dataclasses.replace(run.info, name=f"run{EVIL}", host=host),
        plan=dataclasses.replace(run.plan, cases=tuple(cases.values()), targets=tuple(targets.values())),
        outcomes=tuple(outcomes),
        activities=(),
    )


def spoil_environment(environment: Environment) -> Environment:
    texts = {
        field.name: EVIL
        for field in dataclasses.fields(environment)
        if isinstance(getattr(environment, field.name), str)
    }
    return dataclasses.replace(environment, **texts)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHMARK_STORE", "evil.db")
    first = spoil(make_run())
    second = dataclasses.replace(first, info=dataclasses.replace(first.info, id="f" * 32, created=1.8e9))
    with open_store(Path("evil.db"), create=True) as opened:
        opened.add(first)
        opened.add(second)
    return tmp_path


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["show"],
        ["show", "--failures"],
        ["show", "nonsense"],
        ["show", "-k", "nonsense"],
        ["compare", "@1", "@"],
        ["compare", "@1", "@", "--force"],
        ["history"],
        ["report", "-o", "report.html"],
        ["accept", "--all", "--why", "x"],
        ["export", "--format", "csv"],
        ["export", "--format", "markdown"],
        ["export", "--format", "json"],
        ["export", "--format", "pyperf"],
        ["export", "--env", "nonsense"],
        ["show", "--json", "-"],
        ["history", "--html", "-"],
        ["rm", "@", "--yes"],
    ],
    ids=" ".join,
)
def test_no_command_prints_what_a_strangers_store_orders(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments)
    out, err = capsys.readouterr()
    assert out + err
    assert "Traceback" not in err
    assert_harmless(out)
    assert_harmless(err)


@pytest.mark.parametrize("where", ["field", "name"])
def test_what_a_document_says_is_quoted_harmlessly_in_errors(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    document = export_run(make_run())
    if where == "field":
        document["run"][EVIL] = 1
    name = f"{EVIL.replace('/', '')}.json" if where == "name" else "a.json"
    Path(name).write_text(json.dumps(document) if where == "field" else "{")
    assert main(["import", name, "--store", "s.db"]) == 4
    assert_harmless(capsys.readouterr().err)


@pytest.mark.parametrize(
    "error", [StoreError(EVIL), click.UsageError(EVIL), click.FileError(EVIL, EVIL), OSError(EVIL)]
)
def test_no_error_steers(error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(program.program, "main", fail)
    assert main(["show"]) != 0
    err = capsys.readouterr().err
    assert "PWN" in err
    assert_harmless(err)


def test_neither_do_tracebacks_and_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        warnings.warn(f"careful{EVIL}", stacklevel=1)
        raise RuntimeError(EVIL)

    monkeypatch.setattr(program.program, "main", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["show"]) == 1
    err = capsys.readouterr().err
    assert "UserWarning: careful" in err
    assert "RuntimeError: " in err
    assert_harmless(err)


def test_lines_and_colours_of_our_own_stay(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\n\n  b: 1\u00a0%", nl=False)
    assert capsys.readouterr().out == "a\n\n  b: 1 %"


def test_a_device_is_written_to_and_stays_what_it_is() -> None:
    write_text("text", os.devnull)
    assert not Path(os.devnull).is_file()


def test_what_no_encoding_has_becomes_a_question_mark(tmp_path: Path) -> None:
    write_text("a\udc80b", str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == b"a?b"


@pytest.mark.parametrize("output", [None, "-"])
def test_without_a_file_it_goes_to_standard_output(output: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    write_text("text\n", output)
    assert capsys.readouterr().out == "text\n"


@pytest.mark.parametrize("output", [None, "-", "new.html", "there.html", "folder/new.html", "link.html", os.devnull])
def test_what_can_be_written_passes_and_stays_as_it_is(
    output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "there.html").write_text("before")
    (tmp_path / "link.html").symlink_to("folder/file.html")
    check_output(output, "x.html")
    assert sorted(os.listdir()) == ["folder", "link.html", "there.html"]
    assert (tmp_path / "there.html").read_text() == "before"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("folder", "folder is a folder. Name a file in it, such as folder/x.html."),
        ("no/such/file.html", "There is no folder .*/no/such to write file.html to"),
        ("link.html", "There is no folder .*/gone to write file.html to"),
    ],
)
def test_what_cannot_be_written_is_told_beforehand(
    output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.html").symlink_to("gone/file.html")
    with pytest.raises(UsageError, match=message):
        check_output(output, "x.html")


def test_so_is_a_folder_that_one_may_not_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs tests as root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    check_output(os.devnull, "x.html")
    with pytest.raises(UsageError, match=f"{tmp_path} is read-only for you"):
        check_output(str(tmp_path / "x.html"), "x.html")


def test_a_file_that_could_not_be_put_in_place_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StoreError, match="No space left"):
        write_text("after", str(tmp_path / "file"))
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"
