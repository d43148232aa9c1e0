"""Which dumps there are, and which of their steps are whole."""

from __future__ import annotations

import json

import pytest

from rollout_cassettes.dumps.directory import DumpDirectory
from rollout_cassettes.errors import CassetteError

RUN = "exp_project/GBS4_N2_in64_out16"
V0, V1 = "gen_batch.dp", "tq_batch.pt"


def dump(directory, step, name, **meta):
    """Lay a dump's files out as SkipManager does; nothing here reads the pickle itself."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(b"a pickle")
    (directory / "meta.json").write_text(json.dumps({"global_steps": step, **meta}))
    return directory


@pytest.fixture
def run(tmp_path):
    """The steps' directory of a run of V0 with the steps 2 and 10."""
    for step in (10, 2):
        dump(tmp_path / RUN / str(step), step, V0)
    return tmp_path / RUN


def found(directory, name=None):
    """Give the steps and batches that are found."""
    return [(file.step, file.batch) for file in DumpDirectory.find(directory, name).files]


def test_the_run_is_found_from_each_directory_above_it(run, tmp_path):
    """The `dump_dir`, the experiment's, the steps' own; in the order of the steps."""
    for source in (run, run.parent, tmp_path):
        dumps = DumpDirectory.find(source)
        assert dumps.path == run
        assert [(file.step, file.batch) for file in dumps.files] == [(2, 0), (10, 0)]
        assert (dumps.n, dumps.prompts, dumps.incomplete) == (2, 4, {})


def test_a_directory_of_another_name_will_do(run, tmp_path):
    """It was copied, say; then the number of trajectories of a prompt isn't known."""
    copy = run.rename(tmp_path / "mine")
    dumps = DumpDirectory.find(copy)
    assert (dumps.n, dumps.prompts) == (None, 0)


def test_other_directories_and_files_are_passed_over(run):
    """Only what is named by a number is a step."""
    dump(run / "latest", 2, V0)
    (run / "7").write_text("a file")
    (run / "notes.txt").write_text("")
    assert found(run) == [(2, 0), (10, 0)]


def test_several_runs_are_listed(run, tmp_path):
    """It is for the user to say which is meant."""
    other = dump(tmp_path / "exp_project/GBS8_N2_in64_out16/1", 1, V0).parent
    with pytest.raises(CassetteError) as caught:
        DumpDirectory.find(tmp_path)
    assert str(run) in caught.value.what
    assert str(other) in caught.value.what
    assert found(other) == [(1, 0)]


@pytest.mark.parametrize("made", [False, True])
def test_nothing_found_says_what_was_looked_for(tmp_path, made):
    """A directory that isn't there, and one without dumps."""
    source = tmp_path / "dump"
    if made:
        source.mkdir()
    with pytest.raises(CassetteError, match=str(source)):
        DumpDirectory.find(source)


def test_batches_are_in_numerical_order(tmp_path):
    """Ten comes after two."""
    for batch in range(11):
        dump(tmp_path / "1" / str(batch), 1, V1, num_trajectories=4)
    assert found(tmp_path) == [(1, batch) for batch in range(11)]
    assert DumpDirectory.find(tmp_path).files[0].rows == 4


@pytest.mark.parametrize("missing", [V0, "meta.json"])
def test_a_step_that_was_dumped_in_part_is_left_out(run, missing):
    """And it is said what is missing."""
    (run / "2" / missing).unlink()
    dumps = DumpDirectory.find(run)
    assert [file.step for file in dumps.files] == [10]
    assert dumps.incomplete == {2: f"2/{missing} is missing or unfinished"}


@pytest.mark.parametrize("text", ["", '{"global_st', "7"])
def test_a_meta_file_that_was_cut_short_counts_as_missing(run, text):
    """It is the last thing that is written."""
    (run / "2" / "meta.json").write_text(text)
    assert list(DumpDirectory.find(run).incomplete) == [2]


def test_an_empty_step_is_left_out(run):
    """Its directory is made before its files are."""
    (run / "3").mkdir()
    assert DumpDirectory.find(run).incomplete == {3: f"3/{V0} is missing or unfinished"}


def test_a_step_with_fewer_batches_than_others_is_left_out(tmp_path):
    """The run ended between two samples of it; also where one in the middle is gone."""
    for step, batches in ((1, (0, 1)), (2, (0,)), (3, (1,)), (4, (0, 1))):
        for batch in batches:
            dump(tmp_path / str(step) / str(batch), step, V1)
    dumps = DumpDirectory.find(tmp_path)
    assert [(file.step, file.batch) for file in dumps.files] == [(1, 0), (1, 1), (4, 0), (4, 1)]
    assert list(dumps.incomplete) == [2, 3]


def test_no_whole_step_is_an_error_that_names_them(run):
    """An empty cassette is of no use."""
    for step in ("2", "10"):
        (run / step / "meta.json").unlink()
    with pytest.raises(CassetteError, match=r"Step 2 is not whole.*Step 10 is not whole"):
        DumpDirectory.find(run)


def test_a_step_given_for_the_run_is_refused(tmp_path):
    """Its batches would be taken for steps."""
    dump(tmp_path / "3" / "0", 3, V1)
    with pytest.raises(CassetteError, match="says step 3"):
        DumpDirectory.find(tmp_path / "3")


def test_a_renamed_step_is_refused(run):
    """The directory and the meta file say different steps: one of them is wrong."""
    (run / "10").rename(run / "9")
    with pytest.raises(CassetteError, match="says step 10"):
        DumpDirectory.find(run)


def test_dumps_of_both_kinds_need_a_choice(run):
    """V1 and V0 under one name: they can't be one run."""
    dump(run / "2" / "0", 2, V1)
    with pytest.raises(CassetteError, match="--adapter"):
        DumpDirectory.find(run)
    assert found(run, V0) == [(2, 0), (10, 0)]
    assert found(run, V1) == [(2, 0)]
