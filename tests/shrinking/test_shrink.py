"""Small cassettes of large ones: what is kept, that it replays, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.session.matching import fingerprint
from tests.cli.program import DEMO

PROMPTS = ["a", "a", "b", "b", "b", "c"]


def columns(prompts, step):
    """Answer in columns: three of them, with a row for each prompt."""
    rows = [torch.full((size % 3 + 1,), step) for size in range(len(prompts))]
    ids = torch.nested.as_nested_tensor(rows, layout=torch.jagged) if rows else torch.empty(0, 1)
    return {
        "text": [f"{prompt} {step} {row}" for row, prompt in enumerate(prompts)],
        "ids": ids,
        "scores": torch.arange(float(len(prompts))),
    }


@pytest.fixture
def recorded(loop, tmp_path):
    """A cassette of three steps with three prompts of two, three and one rows; and what made it."""
    generate = loop(columns)
    path = tmp_path / "large"
    with rc.record(path=path):
        live = {step: generate(PROMPTS, step) for step in (1, 2, 3)}
    return generate, path, live


def rows_of(response, rows):
    return {
        "text": [response["text"][row] for row in rows],
        "ids": [response["ids"].unbind()[row].tolist() for row in rows],
        "scores": response["scores"][rows].tolist(),
    }


@pytest.mark.parametrize(
    ("most", "kept"), [(1, 2), (2, 2), (4, 2), (5, 5), (6, 6), (99, 6)], ids=str
)
def test_the_first_prompts_are_kept_with_all_of_their_rows(recorded, tmp_path, most, kept):
    """As many as have no more rows; one at least. A replay that asks for just these gets them."""
    generate, path, live = recorded
    shrunk = rc.shrink(path, tmp_path / "small", rows=most)
    assert (shrunk.steps, shrunk.rows, shrunk.rows_before) == ([1, 2, 3], 3 * kept, 18)
    marks = fingerprint([{"request": prompt} for prompt in PROMPTS[:kept]])
    assert rc.open_cassette(tmp_path / "small")[2].manifest.fingerprint == marks
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        again = {step: generate(PROMPTS[:kept], step) for step in (1, 2, 3)}
    for step, response in again.items():
        whole = [*range(kept)]
        assert rows_of(response, whole) == rows_of(live[step], whole)
        assert type(response["ids"]) is type(live[step]["ids"])


def test_other_prompts_are_a_mismatch(recorded, tmp_path):
    """The request that is kept is compared as ever."""
    generate, path, _ = recorded
    rc.shrink(path, tmp_path / "small", rows=2)
    for prompts in (PROMPTS, ["a", "b"]):
        with rc.replay(path=tmp_path / "small"), pytest.raises(rc.RequestMismatchError):
            generate(prompts, 1)


def test_rows_of_a_prompt_need_not_follow_each_other(loop, tmp_path):
    generate = loop(columns)
    with rc.record(path=tmp_path / "large"):
        live = generate(["a", "b", "a", "c", "b"], 1)
    rc.shrink(tmp_path / "large", tmp_path / "small", rows=3)
    with rc.replay(path=tmp_path / "small"):
        again = generate(["a", "a"], 1)
    assert rows_of(again, [0, 1]) == rows_of(live, [0, 2])


def test_what_is_kept_whole_is_kept_to_the_bit(recorded, tmp_path):
    """Fingerprints, metadata, times and random states too."""
    _, path, _ = recorded
    shrunk = rc.shrink(path, tmp_path / "small", steps="1,3")
    assert shrunk.steps == [1, 3]
    old, new = rc.open_cassette(path), rc.open_cassette(tmp_path / "small")
    for step in (1, 3):
        assert old[step] == new[step]
        assert old[step].manifest.to_bytes() == new[step].manifest.to_bytes()
        new[step].verify()
    assert shrunk.nbytes == sum(file.stat().st_size for file in (tmp_path / "small").iterdir())


def test_random_generators_are_put_where_the_whole_call_left_them(loop, tmp_path):
    generate = loop(lambda prompts, step: [float(torch.rand(())) for _ in prompts])
    with rc.record(path=tmp_path / "large"):
        generate(["a", "b"], 1)
        after = torch.get_rng_state()
    rc.shrink(tmp_path / "large", tmp_path / "small", rows=1)
    with rc.replay(path=tmp_path / "small"):
        generate(["a"], 1)
    assert torch.get_rng_state().equal(after)


def test_every_interaction_of_a_step_and_of_a_phase_is_kept(loop, tmp_path):
    """Each with its own first prompts, also where they are ragged, one or none."""
    generate = loop(columns, phase_of=lambda prompts, step: "val" if "v" in prompts else "train")
    calls = [(PROMPTS, 1), (["x"], 1), ([], 1), (["v", "w"], 1), (["y", "z"], 2)]
    with rc.record(path=tmp_path / "large"):
        for call in calls:
            generate(*call)
    shrunk = rc.shrink(tmp_path / "large", tmp_path / "small", rows=1)
    assert (shrunk.interactions, shrunk.rows, shrunk.rows_before) == (5, 5, 11)
    assert rc.open_cassette(tmp_path / "small").keys == rc.open_cassette(tmp_path / "large").keys
    with rc.replay(path=tmp_path / "small", on_unplayed="error"):
        for prompts, step in [(["a", "a"], 1), (["x"], 1), ([], 1), (["v"], 1), (["y"], 2)]:
            assert len(generate(prompts, step)["text"]) == len(prompts)


@pytest.mark.parametrize("kept", ["text", ["text"], ("scores", "text")])
def test_fields_that_are_not_named_are_left_out(recorded, tmp_path, kept):
    generate, path, live = recorded
    shrunk = rc.shrink(path, tmp_path / "small", fields=kept, rows=2)
    names = [kept] if isinstance(kept, str) else list(kept)
    assert shrunk.dropped == sorted({"text", "ids", "scores"} - {*names})
    with rc.replay(path=tmp_path / "small"):
        again = generate(["a", "a"], 1)
    assert sorted(again) == sorted(names)
    assert again["text"] == live[1]["text"][:2]
    stored = rc.open_cassette(tmp_path / "small")[1].tensors
    assert not any(name.startswith("response/ids") for name in stored)


@pytest.mark.parametrize("fields", ["nope", ["text", "nope"], []])
def test_a_field_that_is_not_there_is_refused_with_those_that_are(recorded, tmp_path, fields):
    _, path, _ = recorded
    with pytest.raises(rc.CassetteError, match="It has ids, scores, text"):
        rc.shrink(path, tmp_path / "small", fields=fields)
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda prompts, step: 3.5, "no rows"),
        (lambda prompts, step: {"a": prompts, "mean": 0.5}, "'mean' of its response has no rows"),
        (lambda prompts, step: {"a": prompts, "b": [1]}, "'b' of its response has 1 rows"),
        (lambda prompts, step: prompts[1:], "its request has 6 rows, and its response has 5"),
        (lambda prompts, step: {}, "its response is empty"),
    ],
)
def test_what_has_no_rows_is_cut_into_steps_alone(loop, tmp_path, answer, why):
    """Rows are never guessed."""
    generate = loop(answer)
    with rc.record(path=tmp_path / "large"):
        live = [generate(PROMPTS, step) for step in (1, 2)]
    with pytest.raises(rc.CassetteError, match=f"Step 1 of .* can't be cut into rows: .*{why}"):
        rc.shrink(tmp_path / "large", tmp_path / "small", rows=4)
    assert rc.shrink(tmp_path / "large", tmp_path / "small", steps=2).rows is None
    with rc.replay(path=tmp_path / "small"):
        assert generate(PROMPTS, 2) == live[1]


def test_without_a_request_uids_or_else_rows_are_prompts(loop, tmp_path):
    for name, uids, kept in (("uids", ["p", "q", "p"], [0, 2]), ("none", None, [0])):
        generate = loop(
            lambda prompts, step, uids=uids: {"n": [0, 1, 2]} | ({"uid": uids} if uids else {}),
            name,
            compared=False,
        )
        with rc.record(path=tmp_path / name):
            generate(None, 1)
        rc.shrink(tmp_path / name, tmp_path / f"{name}-small", rows=1)
        with rc.replay(path=tmp_path / f"{name}-small"):
            assert generate(None, 1)["n"] == kept


def test_what_a_coroutine_returned_has_rows_too(loop, tmp_path):
    """Of a function that returns a coroutine, and is no `async def` itself."""
    import asyncio

    async def answer(prompts):
        return columns(prompts, 1)

    generate = loop(lambda prompts, step: answer(prompts))

    async def once(prompts):
        return await generate(prompts, 1)

    with rc.record(path=tmp_path / "large"):
        asyncio.run(once(PROMPTS))
    rc.shrink(tmp_path / "large", tmp_path / "small", rows=2, fields="text")
    with rc.replay(path=tmp_path / "small"):
        assert asyncio.run(once(["a", "a"])) == {"text": ["a 1 0", "a 1 1"]}


def test_an_adapter_of_yours_says_what_its_rows_are(loop, tmp_path):
    class Pairs(rc.adapters.function().__class__):
        def groups(self, recorded):
            return [rc.adapters.Group([0, 1]), rc.adapters.Group([2])]

    generate = loop(lambda prompts, step: ["x", "y", "z"], compared=False)
    with rc.record(path=tmp_path / "large"):
        generate(None, 1)
    own = Pairs(None, None, None, None, "tests.shrinking.c")
    shrunk = rc.shrink(tmp_path / "large", tmp_path / "small", rows=1, adapters=[own])
    assert (shrunk.rows, rc.open_cassette(tmp_path / "small")[1].response) == (2, ["x", "y"])


# ---- what is refused


def test_what_is_there_already_stays(recorded, tmp_path):
    _, path, _ = recorded
    rc.shrink(path, tmp_path / "small", steps=1)
    with pytest.raises(rc.StepExistsError, match="already holds step 1"):
        rc.shrink(path, tmp_path / "small")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(rc.CassetteWriteError, match="is not empty"):
        rc.shrink(path, tmp_path / "other")
    with pytest.raises(rc.CassetteWriteError, match="is not empty"):
        rc.shrink(path, tmp_path / "other" / "notes.txt")
    assert rc.open_cassette(tmp_path / "small").steps == [1]


def test_it_does_not_go_into_itself(recorded, tmp_path):
    _, path, _ = recorded
    (tmp_path / "link").symlink_to(path)
    for target in (path, path / ".." / "large", tmp_path / "link"):
        with pytest.raises(rc.CassetteError, match="into itself"):
            rc.shrink(path, target, steps=1)
    assert rc.open_cassette(path).steps == [1, 2, 3]


def test_a_damaged_source_leaves_nothing(recorded, tmp_path):
    _, path, _ = recorded
    file = path / "step-000002.safetensors.zst"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(rc.CassetteCorruptError):
        rc.shrink(path, tmp_path / "small", rows=2)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["large"]
    assert rc.shrink(path, tmp_path / "small", steps=[1, 3]).steps == [1, 3]


def test_a_failure_while_writing_leaves_nothing(recorded, tmp_path, monkeypatch):
    from rollout_cassettes.cassette.writer import Writer

    _, path, _ = recorded
    written = []

    def exchange(self, manifest, data):
        if written:
            raise OSError(28, "No space left on device")
        written.append(original(self, manifest, data))

    original = Writer.exchange
    monkeypatch.setattr(Writer, "exchange", exchange)
    with pytest.raises(rc.CassetteWriteError, match="No space left"):
        rc.shrink(path, tmp_path / "small")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["large"]


def test_a_selection_that_leaves_nothing_is_refused(recorded, tmp_path):
    _, path, _ = recorded
    with pytest.raises(rc.CassetteError, match="Nothing would be left"):
        rc.shrink(path, tmp_path / "small", steps=lambda step: step > 3)
    with pytest.raises(rc.StepNotRecordedError, match="Step 4 is not in"):
        rc.shrink(path, tmp_path / "small", steps="2-4")
    with pytest.raises(rc.CassetteNotFoundError):
        rc.shrink(tmp_path / "none", tmp_path / "small")
    for wrong in ({"rows": 0}, {"max_bytes": -1}):
        with pytest.raises(ValueError, match="a number from 1 on"):
            rc.shrink(path, tmp_path / "small", **wrong)


# ---- sizes


def sized(loop, tmp_path, *, cut=True):
    """Record four steps of six prompts that can't be compressed: 4,096 bytes each."""

    def answer(prompts, step):
        random = torch.Generator().manual_seed(step)
        noise = torch.rand(len(prompts), 1024, generator=random)
        return {"noise": noise} if cut else {"noise": noise, "mean": 0.5}

    generate = loop(answer)
    with rc.record(path=tmp_path / "large"):
        for step in (1, 2, 3, 4):
            generate(list("abcdef"), step)
    return tmp_path / "large"


@pytest.mark.parametrize(
    ("most", "steps", "rows"),
    [
        (200_000, [1, 2, 3, 4], 24),
        (90_000, [1, 2, 3, 4], 20),
        (60_000, [1, 2, 3, 4], 12),
        (25_000, [1, 2, 3, 4], 4),
        (13_000, [1, 2], 2),
        (6_000, [1], 1),
    ],
)
def test_prompts_go_until_it_fits_and_then_steps(loop, tmp_path, most, steps, rows):
    """The same number of prompts of every step; the first steps stay."""
    shrunk = rc.shrink(sized(loop, tmp_path), tmp_path / "small", max_bytes=most)
    assert (shrunk.steps, shrunk.rows) == (steps, rows)
    files = [file.stat().st_size for file in (tmp_path / "small").iterdir()]
    assert shrunk.nbytes == sum(files) <= most


def test_rows_and_bytes_both_hold(loop, tmp_path):
    shrunk = rc.shrink(sized(loop, tmp_path), tmp_path / "small", rows=2, max_bytes=200_000)
    assert shrunk.rows == 8


def test_what_has_no_rows_loses_steps(loop, tmp_path):
    path = sized(loop, tmp_path, cut=False)
    assert rc.shrink(path, tmp_path / "small", max_bytes=60_000).steps == [1, 2]


def test_what_cant_fit_names_the_largest_tensors_and_what_would(loop, tmp_path):
    path = sized(loop, tmp_path)
    with pytest.raises(rc.CassetteError, match=r"response/noise 3\.\d kB") as caught:
        rc.shrink(path, tmp_path / "small", max_bytes=3_000)
    assert not (tmp_path / "small").exists()
    assert rc.shrink(path, tmp_path / "small", max_bytes=caught.value.needed).steps == [1]


# ---- the committed cassette, in a process of its own


def test_neither_torch_nor_a_framework_is_needed(tmp_path):
    code = (
        "import sys, rollout_cassettes as rc\n"
        f"shrunk = rc.shrink({str(DEMO)!r}, 'small', rows=4, steps='1-2', fields=['responses', 'uid'])\n"
        "assert (shrunk.rows, shrunk.rows_before) == (8, 32)\n"
        "found = {'torch', 'tensordict', 'verl', 'transfer_queue', 'trl'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(DEMO.parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)


def test_an_uncompressed_cassette_comes_out_compressed(recorded, tmp_path):
    from tests.cli.program import invoke

    _, path, _ = recorded
    plain = shutil.copytree(path, tmp_path / "plain")
    invoke("unpack", plain)
    rc.shrink(plain, tmp_path / "one", rows=2)
    rc.shrink(path, tmp_path / "other", rows=2)
    assert rc.open_cassette(tmp_path / "one") == rc.open_cassette(tmp_path / "other")
    assert rc.open_cassette(tmp_path / "one")[1].manifest.tensors.compression == "zstd"
