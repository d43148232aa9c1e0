"""What verl's own SkipManager dumped, imported and replayed."""

from __future__ import annotations

import asyncio
import json
import shutil
from unittest import mock

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.dumps import import_dumps
from rollout_cassettes.session.matching import fingerprint
from tests.verl.comparison import assert_equal_trainings, renamed, uids

pytestmark = pytest.mark.verl


@pytest.fixture(scope="module", autouse=True)
def skip_manager():
    """SkipManager's state is the class's own: leave nothing of it to other tests."""
    from verl.utils.skip import SkipManager

    with mock.patch.multiple(SkipManager, config=None, step=-1, skip_instances={}):
        yield SkipManager


def skipping(role, dump_dir, steps=(1, 2, 3)):
    """Give the overrides that make SkipManager dump, and load what was dumped."""
    return (
        f"skip.{role}.enable=True",
        f"skip.{role}.dump_dir={dump_dir}",
        f"skip.{role}.steps={list(steps)}",
    )


# ---- V1


@pytest.fixture(scope="module")
def dumped(train, tmp_path_factory):
    """A training that verl dumped and this library recorded at once, and where."""
    root = tmp_path_factory.mktemp("v1")
    with rc.record(path=root / "recorded"):
        live = train(overrides=skipping("rollout_tq", root / "dump"))
    return live, root


@pytest.fixture(scope="module")
def imported(dumped):
    """The cassette made of the dumps."""
    _, root = dumped
    import_dumps(root / "dump", root / "imported", trust_pickle=True)
    return root / "imported"


def test_an_imported_training_is_replayed_to_the_bit(train, dumped, imported):
    """Parameters, optimizer state, metrics but timings, and every batch of the actor."""
    live, _ = dumped
    with rc.replay(path=imported, on_unplayed="error") as session:
        again = train()
    assert session.played == [1, 2, 3]
    assert again.requests.training == 0
    assert again.queue_left == {}
    assert_equal_trainings(live, again)


def prompts_by_uid(interaction):
    """Give the fingerprint of each prompt, as a replay would compare them.

    But without its `extra_info`, to which verl's reward manager adds entries of its own.
    """
    rows = rc.adapters.VerlV1().rows(interaction.request)
    kept = [{name: row[name] for name in row if name != "extra_info"} for row in rows]
    assert all(row["extra_info"]["split"] == "train" for row in rows)
    names = (uid for submission in interaction.request for uid in submission["uid"])
    return dict(zip(names, fingerprint(kept), strict=True))


def test_an_import_is_what_a_recording_holds(dumped, imported):
    """The same trees, tensors under the same names; but the order of prompts is the sampled one."""
    _, root = dumped
    recorded, made = rc.open_cassette(root / "recorded"), rc.open_cassette(imported)
    assert made.keys == recorded.keys
    for theirs, ours in zip(recorded.interactions(), made.interactions(), strict=True):
        assert digest(ours.response["batch"]) == digest(theirs.response["batch"])
        assert digest(ours.response["data"]) == digest(theirs.response["data"])
        assert {"metrics": {}, "left": []}.items() <= ours.response.items()
        assert set(theirs.tensors) == set(ours.tensors)
        assert prompts_by_uid(ours) == prompts_by_uid(theirs)


def test_a_manifest_says_where_it_came_from(dumped, imported):
    """The file below SOURCE, the importer, what read it; and nothing that a dump doesn't say."""
    _, root = dumped
    interaction = rc.open_cassette(imported)[2]
    manifest, origin = interaction.manifest, interaction.manifest.metadata["imported"]
    assert origin["file"].endswith("/2/0/tq_batch.pt")
    assert (root / "dump" / origin["file"]).is_file()
    assert origin["by"].startswith("rollout_cassettes ")
    assert origin["read_with"]["verl"] == "0.9.1"
    assert "verl" not in manifest.versions
    assert (manifest.fingerprint, manifest.seconds, manifest.host) == (None, 0.0, "")
    assert (manifest.adapter, manifest.step_kind) == ("verl_v1", "trainer step")
    assert manifest.entry_point.endswith(":ReplayBuffer.sample")


def rows_of(batch):
    """Give the rows of an actor's batch in any order, without what SkipManager puts in anew."""
    names = {uid: "uid" for uid in uids(batch)} | {
        key.split("_")[0]: "uid" for key in batch.keys  # noqa: SIM118 - a list
    }
    kept = sorted(batch.fields.keys() - {"uid", "session_id"})
    return sorted(
        digest([renamed(batch.fields[name][row], names) for name in kept])
        for row in range(len(batch.keys))
    )


def test_an_import_gives_the_rows_that_skip_manager_gives(train, dumped, imported):
    """To the bit, but for their order, uids and sessions."""
    _, root = dumped
    theirs = train(steps=1, overrides=skipping("rollout_tq", root / "dump"))
    with rc.replay(path=imported):
        ours = train(steps=1)
    assert (theirs.requests.training, ours.requests.training) == (0, 0)
    (left,), (right,) = theirs.actor_batches[:1], ours.actor_batches[:1]
    assert left.fields.keys() == right.fields.keys()
    assert rows_of(left) == rows_of(right)


# ---- what can be wrong with dumps of V1


@pytest.fixture
def copied(dumped, tmp_path):
    """A copy of the dumps: where their steps are."""
    _, root = dumped
    (steps,) = shutil.copytree(root / "dump", tmp_path / "dump").glob("*/GBS*")
    return steps


def refused(source, tmp_path, **options):
    """Import what can't be imported: nothing is left of it."""
    before = set(tmp_path.iterdir())
    with pytest.raises(rc.CassetteError) as caught:
        import_dumps(source, tmp_path / "c", trust_pickle=True, **options)
    assert set(tmp_path.iterdir()) == before
    return str(caught.value)


def test_the_older_layout_is_imported_too(copied, dumped, imported, tmp_path):
    """`{step}/tq_batch.pt`, as verl had it before there were several batches to a step."""
    for step in copied.iterdir():
        for file in (step / "0").iterdir():
            file.rename(step / file.name)
        (step / "0").rmdir()
    import_dumps(copied, tmp_path / "c", trust_pickle=True)
    older, newer = rc.open_cassette(tmp_path / "c"), rc.open_cassette(imported)
    assert older.keys == newer.keys
    for left, right in zip(older.interactions(), newer.interactions(), strict=True):
        assert digest(left.response["data"]) == digest(right.response["data"])


def test_the_batches_of_a_step_become_its_interactions(copied, tmp_path):
    """In the order of their numbers; here step 2's batch is put in place of a second one."""
    second = shutil.move(copied / "2" / "0", copied / "1" / "1")
    (second / "meta.json").write_text(json.dumps({"global_steps": 1, "num_trajectories": 8}))
    shutil.rmtree(copied / "2")
    shutil.rmtree(copied / "3")
    result = import_dumps(copied, tmp_path / "c", trust_pickle=True)
    assert (result.steps, result.interactions) == ([1], 2)
    assert rc.open_cassette(tmp_path / "c").keys == [rc.Key(1), rc.Key(1, index=1)]


def test_a_damaged_pickle_is_named(copied, tmp_path):
    """And the steps before it are not kept."""
    file = copied / "2" / "0" / "tq_batch.pt"
    file.write_bytes(file.read_bytes()[:-1000])
    assert str(file) in refused(copied, tmp_path)


def test_a_file_that_holds_something_else_is_named(copied, tmp_path):
    """A pickle of another kind, and one whose rows are not as many as its meta file says."""
    import torch

    file = copied / "2" / "0" / "tq_batch.pt"
    payload = torch.load(file, weights_only=False)
    torch.save([1, 2], file)
    assert str(file) in refused(copied, tmp_path)
    torch.save({**payload, "tags": payload["tags"][:-1]}, file)
    assert "8 keys, 7 tags, 8 tensordict" in refused(copied, tmp_path)


def test_a_value_that_cannot_be_stored_is_named(copied, tmp_path):
    """With the file and its place in it."""
    import torch
    from tensordict import NonTensorData, NonTensorStack

    file = copied / "2" / "0" / "tq_batch.pt"
    payload = torch.load(file, weights_only=False)
    payload["tensordict"]["odd"] = NonTensorStack(*[NonTensorData(print) for _ in range(8)])
    torch.save(payload, file)
    message = refused(copied, tmp_path)
    assert str(file) in message
    assert "odd" in message
