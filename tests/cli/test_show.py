"""The command `show`."""

from __future__ import annotations

import pytest
import torch

import rollout_cassettes as rc
from tests.cli.program import DEMO, TERMINAL, invoke, loaded


def test_a_cassette_is_shown_by_its_steps(demo):
    text = invoke("show", demo, width=80).stdout
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == [str(demo)]
    assert ["1", "16", "4", "982", "61.4", "1.402", "0.3802", "2.11", "s", "8.4", "kB"] in rows
    assert "reward           ▄▁█  1.188 to 1.625" in text
    assert "verl 0.9.1" in text
    assert max(map(len, text.splitlines())) <= 80


def test_figures_that_no_step_has_take_no_room(record):
    """As in a loop whose fields have names of its own."""
    heading = next(
        line
        for line in invoke(
            "show", record("mine", lambda step: {"digits": [step]})
        ).stdout.splitlines()
        if line.startswith("step ")
    )
    assert heading.split() == ["step", "generation", "size"]


def test_a_step_is_shown_by_its_rows_and_by_what_it_holds(demo):
    text = invoke("show", demo, "--step", 2, width=120).stdout
    assert "  3      1        1      27  0.4375  What is 19 plus 12?" in text
    for line in ("responses  i64[16,2..64]", "rm_scores  f32[16,2..64]", "dummy_tensor  u8[4,1]"):
        assert line in text


def test_a_trajectory_is_shown_with_its_tokens(demo):
    text = invoke("show", demo, "--step", 2, "--row", 3, width=80).stdout
    assert text.startswith("step 2 · row 3 · group 1, session 1 · reward 0.4375\n")
    for part in ("user: What is 19 plus 12?", "19 43 239 186", "log-prob  ▃▄", "0 to 0.4375"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


def test_tokens_are_shaded_by_their_probability(record, texts):
    """On a terminal; faint where the mask leaves them out. The text itself is the same."""
    mask = torch.tensor([[1, 1, 1], [1, 0, 1]])
    path = record("c", lambda step: {**texts(step), "completion_mask": mask})
    command = ("show", path, "--step", 1, "--row", 1)
    coloured = invoke(*command, environment=TERMINAL).stdout
    assert "\x1b[30;48;2;255;143;112m8 " in coloured  # -5.0: less than a hundredth
    assert "\x1b[2;3m9 " in coloured
    assert "\x1b[30;48;2;255;181;156m10 " in coloured  # -2.5: less than a tenth
    text = invoke(*command).stdout
    assert "fünf 🎞" in text
    assert "8 9 10" in text


def test_a_tokenizer_gives_their_text(demo, tmp_path):
    """Byte by byte, here: a `tokenizer.json` is all it needs."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"t{number}": number for number in range(300)}
    tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "t0")).save(
        str(tmp_path / "tokenizer.json")
    )
    command = ("show", demo, "--step", 2, "--row", 0, "--tokenizer", tmp_path)
    assert "t175" in invoke(*command).stdout
    assert loaded(*command)["response"] == "t175 t258"
    rows = loaded("show", demo, "--step", 2, "--tokenizer", tmp_path)["trajectories"]
    assert rows[0]["response"] == "t175 t258"


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_what_is_no_tokenizer_is_an_error(content, demo, tmp_path):
    directory = tmp_path / "tokenizer"
    if content is not None:
        pytest.importorskip("tokenizers")
        directory.mkdir()
        (directory / "tokenizer.json").write_text(content)
    done = invoke("show", demo, "--step", 1, "--tokenizer", directory, status=1)
    assert f"No tokenizer can be read from {directory}" in done.stderr


def test_phases_and_indices_are_told_apart(demo):
    """A step with one interaction needs neither; what is not there is named."""
    path = DEMO.parent / "format-v1" / "plain"
    assert "step 5 (val)" in invoke("show", path, "--step", 5, "--phase", "val").stdout
    assert "not step 5 (val), interaction 7" in invoke(
        "show", path, "--step", 5, "--phase", "val", "--index", 7, status=1
    ).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--step", "9"], "Step 9 is not in the cassette"),
        (["--step", "9", "--text"], "Step 9 is not in the cassette"),
        (["--step", "1", "--row", "16"], "holds the rows 0-15"),
        (["--step", "1", "--row", "-1"], "holds the rows 0-15"),
    ],
)
def test_what_is_not_there_is_an_error_with_ways_out(arguments, told, demo):
    done = invoke("show", demo, *arguments, status=1)
    assert told in done.stderr
    assert "To fix it:" in done.stderr
    assert done.stdout == ""


def test_a_row_needs_a_step(demo):
    assert "--row needs --step" in invoke("show", demo, "--row", 1, status=2).stderr


@pytest.mark.parametrize("other", ["--json", "--row=0"])
def test_text_goes_alone(other, demo):
    """Never text where JSON was asked for."""
    done = invoke("show", demo, "--text", "--step", 1, other, status=2)
    assert "--text goes with neither --json nor --row" in done.stderr


def test_a_directory_of_cassettes_names_them():
    done = invoke("show", DEMO.parent, status=1)
    assert f"Name one of those below it: {DEMO}" in done.stderr


def test_a_damaged_step_is_an_error(demo):
    (demo / "step-000002.msgpack").write_bytes(b"\x81")
    assert "step-000002.msgpack is damaged" in invoke("show", demo, status=1).stderr
    assert "step 1" in invoke("show", demo, "--step", 1).stdout


def test_machines_get_manifests_figures_and_rows(demo):
    found = loaded("show", demo)
    assert [(each["step"], each["rows"], each["adapter"]) for each in found["interactions"]] == [
        (step, 16, "verl_v1") for step in (1, 2, 3)
    ]
    step = loaded("show", demo, "--step", 2)
    row = loaded("show", demo, "--step", 2, "--row", 3)
    assert step["trajectories"][3] == row
    assert len(row["response_ids"]) == 27
    assert row["score"] == 0.4375


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["plain", "zstd"])
def test_any_value_can_be_shown(kind, step):
    """To people, as text, and to machines."""
    path = DEMO.parent / "format-v1" / kind
    assert invoke("show", path, "--step", step, width=80).stdout
    assert loaded("show", path, "--step", step)["trajectories"] == []
    assert invoke("show", path, "--step", step, "--text").stdout


# ---- as text


def test_text_has_every_value_on_a_line_of_its_own(demo):
    """So that a changed token is a changed line."""
    lines = invoke("show", demo, "--text").stdout.splitlines()
    assert lines[0] == "== step-000001.msgpack"
    assert "adapter  'verl_v1'" in lines
    assert "response/data/responses/values  i64[982]" in lines
    assert lines[lines.index("response/data/responses/values  i64[982]") + 1].split()[:3] == [
        "97",
        "7",
        "7",
    ]


def test_files_by_themselves_are_shown_as_text(demo):
    """As `git diff` hands them over: with no other file beside them."""
    whole = invoke("show", demo, "--step", 1, "--text").stdout
    for name in ("step-000001.msgpack", "step-000001.safetensors.zst"):
        alone = demo.parent / "alone" / name
        alone.parent.mkdir(exist_ok=True)
        (demo / name).rename(alone)
        text = invoke("show", alone, "--text").stdout
        assert text
        assert text in whole


@pytest.mark.parametrize("name", ["step-000001.msgpack", "step-000001.safetensors.zst", "x.txt"])
def test_what_is_no_file_of_a_cassette_is_an_error(name, tmp_path):
    (tmp_path / name).write_bytes(b"\x28\xb5\x2f\xfd nothing")
    assert name in invoke("show", tmp_path / name, "--text", status=1).stderr


def test_large_tensors_are_told_by_their_hash(record):
    path = record("large", lambda step: torch.arange(100_000) + step)
    first, second = (invoke("show", path, "--step", step, "--text").stdout for step in (1, 2))
    assert "sha256" in first
    assert first.splitlines()[-1] != second.splitlines()[-1]
    assert len(first.splitlines()) < 100
    assert rc.open_cassette(path).steps == [1, 2]
