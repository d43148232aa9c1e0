"""The command `export`."""

from __future__ import annotations

import json
import sys

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cli.export import _PACKAGES, Format
from tests.cli.program import DEMO, invoke, loaded


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run in an empty directory: that is where exports go."""
    monkeypatch.chdir(tmp_path)


def lines(path):
    """Give the records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_jsonl_has_a_file_for_each_step_in_the_columns_of_verl(tmp_path):
    """As `trainer.rollout_data_dir` has them."""
    done = invoke("export", DEMO, "--to", "jsonl")
    assert "48 trajectories" in done.stdout
    assert "--tokenizer" in done.stderr
    files = sorted(file.name for file in (tmp_path / "demo-jsonl").iterdir())
    assert files == ["1.jsonl", "2.jsonl", "3.jsonl"]
    rows = lines(tmp_path / "demo-jsonl" / "2.jsonl")
    assert list(rows[3]) == ["input", "output", "gts", "score", "step", "uid", "acc"]
    assert (rows[3]["gts"], rows[3]["score"], rows[3]["step"]) == ("31", 0.4375, 2)
    keys = rc.open_cassette(DEMO, numpy=True)[2].response["batch"]["keys"]
    assert [row["uid"] for row in rows] == keys


def test_text_is_exported_as_it_was_recorded(record, texts, tmp_path):
    done = invoke("export", record("mine", texts), "--to", "jsonl")
    assert done.stderr == ""
    (first, second) = lines(tmp_path / "mine-jsonl" / "2.jsonl")
    assert (first["input"], first["output"]) == ("1 + 1 =", "two 2")
    assert (second["output"], second["score"]) == ("fünf 🎞", 2.0)


def test_one_step_can_be_exported(tmp_path):
    assert loaded("export", DEMO, "--to", "jsonl", "--step", 2, "--output", "x") == {
        "output": "x",
        "rows": 16,
    }
    assert [file.name for file in (tmp_path / "x").iterdir()] == ["2.jsonl"]


@pytest.mark.parametrize("to", ["parquet", "hf-dataset"])
def test_tables_have_all_that_is_known(to, tmp_path):
    pytest.importorskip("pyarrow")
    if to == "parquet":
        import pyarrow.parquet

        invoke("export", DEMO, "--to", to)
        table = pyarrow.parquet.read_table("demo.parquet").to_pylist()
    else:
        datasets = pytest.importorskip("datasets")
        invoke("export", DEMO, "--to", to)
        table = datasets.load_from_disk("demo-dataset").to_list()
    rows = [row for each in rc.open_cassette(DEMO) for row in each.trajectories]
    assert len(table) == len(rows) == 48
    for cells, row in zip(table, rows, strict=True):
        assert cells["response_ids"] == row.response_ids.tolist()
        assert cells["log_probs"] == row.log_probs.tolist()
        assert (cells["step"], cells["group"], cells["score"]) == (row.step, row.group, row.score)
        assert json.loads(cells["reward_model"]) == row.metadata["reward_model"]


def test_columns_of_several_types_become_text(record, tmp_path):
    """A table has one type for each; nothing is lost."""
    pq = pytest.importorskip("pyarrow.parquet")
    odd = [1, "two", None, {"a": 3}, 2**70]
    path = record("odd", lambda step: {"response": list("abcde"), "odd": odd}, [1])
    invoke("export", path, "--to", "parquet")
    column = pq.read_table("odd.parquet")["odd"].to_pylist()
    assert column == ["1", "two", None, '{"a": 3}', str(2**70)]


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_what_is_there_is_replaced_only_if_asked_for(to, tmp_path):
    if to == "parquet":
        pytest.importorskip("pyarrow")
    invoke("export", DEMO, "--to", to, "--output", "out")
    assert (
        "out is there already"
        in invoke("export", DEMO, "--to", to, "--output", "out", status=1).stderr
    )
    invoke("export", DEMO, "--to", to, "--output", "out", "--step", 1, "--overwrite")
    assert {entry.name for entry in tmp_path.iterdir()} == {"out"}
    assert to == "parquet" or [file.name for file in (tmp_path / "out").iterdir()] == ["1.jsonl"]


@pytest.mark.parametrize("to", ["jsonl", "parquet", "hf-dataset"])
def test_what_is_no_export_is_never_replaced(to, demo, tmp_path):
    """`--overwrite` with the wrong path must not cost a recording, or a directory with other things."""
    for package in _PACKAGES.get(Format(to), ()):
        pytest.importorskip(package)
    things = tmp_path / "things"
    (things / "below").mkdir(parents=True)
    (things / "below" / "thesis.tex").touch()
    for path in (demo, things, *(() if to == "parquet" else (demo / "step-000001.msgpack",))):
        done = invoke("export", DEMO, "--to", to, "--output", path, "--overwrite", status=1)
        assert f"{path} is not replaced" in done.stderr
    assert rc.open_cassette(demo).steps == [1, 2, 3]
    assert (things / "below" / "thesis.tex").exists()
    for _ in range(2):
        invoke("export", DEMO, "--to", to, "--output", "again", "--overwrite")


def test_nothing_is_left_where_it_fails(demo, tmp_path):
    (demo / "step-000003.safetensors.zst").write_bytes(b"")
    assert (
        "is damaged" in invoke("export", demo, "--to", "jsonl", "--output", "o/x", status=1).stderr
    )
    assert list((tmp_path / "o").iterdir()) == []


def test_what_has_no_rows_can_not_be_exported(tmp_path):
    done = invoke("export", DEMO.parent / "format-v1" / "plain", "--to", "jsonl", status=1)
    assert "shows no trajectories" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("to", "package"), [("parquet", "pyarrow"), ("hf-dataset", "datasets")])
def test_a_missing_package_is_named(to, package, monkeypatch):
    """Before anything is read."""
    pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, package, None)
    done = invoke("export", DEMO, "--to", to, status=1)
    assert f"{package} is not installed" in done.stderr
    assert f"pip install {package}" in done.stderr


def test_an_unknown_format_is_a_usage_error():
    assert "'hf-dataset'" in invoke("export", DEMO, "--to", "csv", status=2).stderr
