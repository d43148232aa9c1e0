"""What verl's own SkipManager dumped, imported and replayed."""

from __future__ import annotations

import asyncio
import shutil

import pytest

import rollout_cassettes as rc
from rollout_cassettes.cassette.digest import digest
from rollout_cassettes.dumps import import_dumps
from rollout_cassettes.session.matching import fingerprint
from tests.verl.comparison import assert_equal_trainings, renamed, uids
from tests.verl.overrides import SEPARATE_ASYNC, TWO_OUTPUTS
from tests.verl.skip_manager import kept_apart, skipping

pytestmark = pytest.mark.verl


@pytest.fixture(scope="module", autouse=True)
def skip_manager():
    """Leave nothing of its state to other tests."""
    with kept_apart() as manager:
        yield manager


# ---- V1


def unguarded():
    """Give the adapter without its refusal to record what SkipManager dumps at the same time."""
    adapter = rc.adapters.VerlV1()
    points = adapter.entry_points
    adapter.entry_points = tuple(each for each in points if each.role is not rc.adapters.Role.START)
    return adapter


@pytest.fixture(scope="module")
def dumped(train, tmp_path_factory):
    """A training that verl dumped and this library recorded at once, and where."""
    root = tmp_path_factory.mktemp("v1")
    with rc.record(path=root / "recorded", adapters=unguarded()):
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
    names = dict.fromkeys(uids(batch), "uid") | {key.split("_")[0]: "uid" for key in batch.keys}
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


@pytest.mark.parametrize("outputs", [(), TWO_OUTPUTS], ids=["one-output", "two-outputs"])
def test_failed_sessions_stay_failed(train, tmp_path, outputs):
    """Where SkipManager fills up with rows of others; and outputs of a session stay apart."""
    dump = skipping("rollout_tq", tmp_path / "dump")
    live = train(steps=1, fail=(3,), overrides=(*outputs, *dump))
    import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    keys = rc.open_cassette(tmp_path / "c")[1].response["batch"].keys
    assert len(keys) == (14 if outputs else 7)
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=1, overrides=outputs)
    assert_equal_trainings(live, again)


def test_prompts_whose_sessions_all_failed_stay_without_trajectories(train, tmp_path):
    """They left no rows, but the directory's name says how many prompts there were."""
    dump = skipping("rollout_tq", tmp_path / "dump")
    live = train(steps=1, fail=range(1, 6), overrides=dump)
    import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    assert len(rc.open_cassette(tmp_path / "c")[1].request[0]["uid"]) == 4
    with rc.replay(path=tmp_path / "c"):
        again = train(steps=1)
    assert_equal_trainings(live, again)


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


def test_the_batches_of_a_step_become_its_interactions(train, tmp_path):
    """Verl's separate-async trainer samples twice a step here, and SkipManager dumps both."""
    dump = skipping("rollout_tq", tmp_path / "dump")
    live = train(steps=2, overrides=(*SEPARATE_ASYNC, *dump))
    result = import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    assert (result.steps, result.interactions) == ([1, 2], 4)
    cassette = rc.open_cassette(tmp_path / "c")
    assert cassette.keys == [rc.Key(step, index=index) for step in (1, 2) for index in (0, 1)]
    for interaction in cassette.interactions():
        file = interaction.manifest.metadata["imported"]["file"]
        assert file.endswith(f"/{interaction.step}/{interaction.index}/tq_batch.pt")
        assert len(interaction.request) == (0 if interaction.index else 2)
        assert len(interaction.response["batch"].keys) == 4
    # SkipManager warms nothing up, and so neither does a run that replays what it dumped.
    cold = "trainer.v1.separate_async.num_warmup_batches=0"
    with rc.replay(path=tmp_path / "c", on_unplayed="error"):
        again = train(steps=2, overrides=(*SEPARATE_ASYNC, cold))
    assert again.requests == (0, 0)
    assert again.queue_left == {}
    assert not {*map(str, live.actor_batches[0].keys)} & {*map(str, again.actor_batches[0].keys)}
    assert_equal_trainings(live, again)
    (steps,) = (tmp_path / "dump").glob("*/GBS*")
    shutil.rmtree(steps / "2" / "1")
    result = import_dumps(tmp_path / "dump", tmp_path / "d", trust_pickle=True)
    assert result.steps == [1]
    assert "1 batches, and other steps hold 2" in result.incomplete[2]


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


# ---- V0 and fully asynchronous


@pytest.fixture(scope="module")
def loop():
    """Where workers are made."""
    from tests.verl.event_loop import EventLoopThread

    with EventLoopThread() as thread:
        yield thread


@pytest.fixture
def rollouts(assets, dataset_cache, loop, skip_manager, tmp_path):
    """Make `LocalRollouts` whose rollouts SkipManager dumps, or loads."""
    from verl.experimental.agent_loop import AgentLoopManager
    from verl.experimental.fully_async_policy.fully_async_rollouter import (
        FullyAsyncAgentLoopManager,
    )

    from tests.verl.local_manager import LocalRollouts

    classes = {"rollout": AgentLoopManager, "async_rollout": FullyAsyncAgentLoopManager}

    def make(role, **options):
        ours = LocalRollouts(classes[role], assets, loop, **options)
        section = ours.config.skip[role]
        section.enable, section.dump_dir, section.steps = True, str(tmp_path / "dump"), [1, 2]
        skip_manager.init(ours.config)
        return ours

    yield make
    skip_manager.skip_instances = {}


def ask(ours, step, **options):
    """Ask a V0 manager, at a step that SkipManager and this library know."""
    from verl.utils.skip import SkipManager

    SkipManager.set_step(step)
    return ours.manager.generate_sequences(ours.prompts(step, **options))


def feed(ours, index):
    """Feed a prompt to a fully asynchronous manager."""
    return asyncio.run(ours.manager.generate_sequences_single(ours.fed(index)))


@pytest.fixture
def off(skip_manager):
    """Switch SkipManager off: nothing but the cassette is to answer."""

    def switch():
        skip_manager.skip_instances = {}

    return switch


def test_v0_gets_what_skip_manager_gives(rollouts, off, tmp_path):
    """Equal to the bit, meta info and timings too; and the order of the columns."""
    ours = rollouts("rollout")
    live = [ask(ours, step) for step in (1, 2)]
    theirs = [ask(ours, step, run="again") for step in (1, 2)]
    asked = ours.llm.training
    off()
    result = import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    assert (result.adapter, result.steps) == ("verl_v0", [1, 2])
    with rc.replay(path=tmp_path / "c", on_unplayed="error"):
        again = [ask(ours, step, run="b") for step in (1, 2)]
    assert ours.llm.training == asked == 16
    for left, skipped, right in zip(live, theirs, again, strict=True):
        assert digest(right) == digest(skipped) == digest(left)
        assert list(right.non_tensor_batch) == list(skipped.non_tensor_batch)


def test_v0_gets_its_own_uids_where_they_are_handed_back(rollouts, off, tmp_path):
    """So that the trainer can `union` what it gets, which it can't with SkipManager's."""
    ours = rollouts("rollout", late_rewards=True)
    live = ask(ours, 1)
    skipped = ask(ours, 1, run="b")
    off()
    import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    with rc.replay(path=tmp_path / "c"):
        again = ask(ours, 1, run="b")
    assert list(again.non_tensor_batch) == list(live.non_tensor_batch)
    assert digest(again.batch) == digest(live.batch)
    columns = {n: c for n, c in live.non_tensor_batch.items() if n != "uid"}
    assert digest({n: again.non_tensor_batch[n] for n in columns}) == digest(columns)
    ours.prompts(1, run="b").union(again)
    with pytest.raises(AssertionError):
        ours.prompts(1, run="b").union(skipped)


@pytest.mark.parametrize("late_rewards", [False, True])
def test_v0_repeats_whole_groups(rollouts, off, tmp_path, late_rewards):
    """Which rows belong to one prompt is known from the uids, or told from the prompts."""
    ours = rollouts("rollout", late_rewards=late_rewards)
    live = ask(ours, 1)
    off()
    import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    request = rc.open_cassette(tmp_path / "c")[1].request
    names = list(dict.fromkeys(request.non_tensor_batch["uid"]))
    assert [names.index(uid) for uid in request.non_tensor_batch["uid"]] == [0, 0, 1, 1, 2, 2, 3, 3]
    with rc.replay(mode="repeat", path=tmp_path / "c"):
        again = ask(ours, 7, count=6)
    rows = [row % 8 for row in range(12)]
    assert digest(again.batch["responses"]) == digest(live.batch["responses"][rows])


def test_groups_of_equal_prompts_are_told_apart_by_their_number(rollouts, off):
    """`N2` in the directory's name; without it, they can't be."""
    import torch

    from rollout_cassettes.dumps.gen_batch import exchange

    ours = rollouts("rollout")
    off()
    output = ask(ours, 1, count=2)
    output.batch["prompts"] = torch.ones_like(output.batch["prompts"])
    groups = [len(set(exchange(output, 1, n).request.non_tensor_batch["uid"])) for n in (2, None)]
    assert groups == [2, 1]


def test_fully_asynchronous_dumps_are_told_from_v0(rollouts, off, tmp_path):
    """By what a single worker returned; their steps are feed indices."""
    ours = rollouts("async_rollout")
    live = [feed(ours, index) for index in (1, 2)]
    asked = ours.llm.training
    skipped = feed(ours, 2)
    off()
    result = import_dumps(tmp_path / "dump", tmp_path / "c", trust_pickle=True)
    assert (result.adapter, result.steps) == ("verl_fully_async", [1, 2])
    assert rc.open_cassette(tmp_path / "c")[1].manifest.step_kind == "feed index"
    with rc.replay(path=tmp_path / "c"):
        again = [feed(ours, index) for index in (2, 1)]
    assert ours.llm.training == asked
    assert digest(again[0]) == digest(live[1]) == digest(skipped)
    assert digest(again[1]) == digest(live[0])


def test_the_adapter_can_be_said(rollouts, off, tmp_path):
    """For dumps of managers that return something of their own."""
    ours = rollouts("async_rollout")
    feed(ours, 1)
    off()
    result = import_dumps(tmp_path / "dump", tmp_path / "c", adapter="verl_v0", trust_pickle=True)
    assert result.adapter == "verl_v0"
    assert rc.open_cassette(tmp_path / "c")[1].manifest.adapter == "verl_v0"
    assert "tq_batch.pt" in refused(tmp_path / "dump", tmp_path, adapter="verl_v1")


def test_dumps_that_look_mixed_are_refused(rollouts, off, tmp_path):
    """Unless it is said which adapter is meant."""
    feed(rollouts("async_rollout"), 1)
    ask(rollouts("rollout"), 2)
    off()
    message = refused(tmp_path / "dump", tmp_path)
    assert "'verl_v0'" in message
    assert "'verl_fully_async'" in message
    import_dumps(tmp_path / "dump", tmp_path / "c", adapter="verl_v0", trust_pickle=True)


def test_a_damaged_data_proto_is_named(rollouts, off, tmp_path):
    """And a pickle of something else."""
    import pickle

    ask(rollouts("rollout"), 1)
    off()
    (file,) = (tmp_path / "dump").rglob("gen_batch.dp")
    file.write_bytes(file.read_bytes()[:-10])
    assert str(file) in refused(tmp_path / "dump", tmp_path)
    file.write_bytes(pickle.dumps({"a": 1}))
    assert "holds a dict" in refused(tmp_path / "dump", tmp_path)
