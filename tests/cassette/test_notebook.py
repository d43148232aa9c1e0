"""How cassettes, interactions, trajectories and sessions show themselves in notebooks."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser

import pytest
import torch

import rollout_cassettes as rc
from rollout_cassettes.cassette import notebook
from rollout_cassettes.trajectories import Trajectory
from tests.docs.blocks import ROOT

DEMO = ROOT / "cassettes" / "demo"
VOID = {"br", "hr", "img"}


class Page(HTMLParser):
    """What a browser makes of HTML: its elements, properly nested, and its text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words, self.styles = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.styles.append(dict(attrs).get("style", ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def shown(value):
    """Give the text and the page that a notebook has of a value."""
    bundle = value._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "text/html"}
    return bundle["text/plain"], Page(bundle["text/html"])


def test_a_cassette_shows_its_steps_and_trends():
    text, page = shown(rc.open_cassette(DEMO))
    for told in (text, page.text):
        for part in ("steps 1-3", "1,019", "▄▁█", "1.188 to 1.625", "verl 0.9.1"):
            assert part in told
    assert page.tags.count("tr") == 4 + 2


def test_an_interaction_shows_its_rows_and_one_trajectory():
    text, page = shown(rc.open_cassette(DEMO)[2])
    for told in (text, page.text):
        for part in ("What is 19 plus 12?", "0.4375", "step 2 · row 0", "f32[16,2..64]", "175"):
            assert part in told


def test_a_trajectory_shows_its_tokens():
    """Each with its number, its probability's shade, its reward; faint where it is masked."""
    row = rc.open_cassette(DEMO)[2].trajectories[3]
    row.mask[0] = 0
    text, page = shown(row.decoded(lambda ids: "<" + "|".join(map(str, ids)) + ">"))
    assert "<19><43>" in text
    assert "<19>" in page.text
    styles = "\n".join(page.styles)
    assert "rgba(255,110,60,0.7)" in styles
    assert "opacity:0.5" in styles
    assert styles.count("border-bottom:2px") == 1


def test_nothing_sets_colours_that_a_theme_could_clash_with():
    """No text colour, no opaque background, no style sheet, no script."""
    cassette = rc.open_cassette(DEMO)
    for value in (cassette, cassette[1], cassette[1].trajectories[0]):
        _, page = shown(value)
        assert not {"script", "style", "link", "img", "iframe"} & set(page.tags)
        for style in page.styles:
            for rule in filter(None, style.split(";")):
                name, _, colour = rule.partition(":")
                assert name != "color"
                assert name != "background" or colour == "none" or colour.startswith("rgba(")


def test_recorded_text_is_shown_and_not_obeyed():
    """Neither by a browser nor by a terminal."""
    hostile = "<script>alert(1)</script>\x1b[2J\ud800"
    row = Trajectory(prompt=hostile, response=hostile, metadata={hostile: hostile}, score=1.0)
    text, page = shown(row)
    assert "script" not in page.tags
    assert "<script>alert(1)</script>␛[2J" in page.text
    assert "\x1b" not in text + page.text
    (text + page.text).encode()


@pytest.mark.parametrize("kind", ["plain", "zstd"])
def test_anything_that_was_recorded_can_be_shown(kind):
    cassette = rc.open_cassette(ROOT / "cassettes" / "format-v1" / kind)
    shown(cassette)
    for interaction in cassette.interactions():
        shown(interaction)


def test_damage_is_shown_beside_what_is_sound(tmp_path):
    """A cell that only looks never ends in a traceback."""
    path = shutil.copytree(DEMO, tmp_path / "c")
    (path / "step-000001.msgpack").write_bytes(b"")
    (path / "step-000002.safetensors.zst").write_bytes(b"")
    text, page = shown(rc.open_cassette(path))
    for told in ("".join(text.split()), "".join(page.text.split())):  # paths wrap as they like
        assert "1,019" in told
        assert "step-000001.msgpackisdamaged" in told
        assert "step-000002.safetensors.zstisdamaged" in told
    (path / "step-000003.msgpack").unlink()
    assert "isdamaged" in "".join(shown(rc.open_cassette(path))[0].split())
    assert "step-000002.safetensors.zst is damaged" in shown(rc.open_cassette(path)[2])[0]


def test_a_file_that_the_system_will_not_read_is_shown_as_one(tmp_path):
    path = shutil.copytree(DEMO, tmp_path / "c")
    for file in (path / "step-000001.msgpack", path / "step-000002.safetensors.zst"):
        file.unlink()
        file.mkdir()
    text, _ = shown(rc.open_cassette(path))
    assert "step 1 can't be read: [Errno 21] Is a directory" in " ".join(text.split())
    assert "step 2 can't be read: [Errno 21] Is a directory" in " ".join(text.split())
    assert "Is a directory" in shown(rc.open_cassette(path)[2])[0]


def test_an_empty_cassette_says_so(tmp_path):
    assert "steps none" in shown(rc.open_cassette(tmp_path))[0]


def test_of_a_large_cassette_a_part_is_read(monkeypatch):
    """A notebook shows what a cell ends with, whatever it costs."""
    monkeypatch.setattr(notebook, "_MOST_BYTES", 130_000)
    text, _ = shown(rc.open_cassette(DEMO))
    assert "2 of 3 interactions are shown" in text
    monkeypatch.setattr(notebook, "_MOST_ROWS", 5)
    assert "5 of 16 rows are shown" in shown(rc.open_cassette(DEMO)[1])[1].text


def test_a_session_shows_what_it_did(tmp_path):
    @rc.adapters.function(step_of=lambda step: step, name="tests.notebook")
    def rollout(step):
        return torch.zeros(2)

    with rc.record(path=tmp_path / "c") as session:
        rollout(1)
        rollout(2)
    text, page = shown(session)
    for told in (text, page.text):
        assert "2 steps recorded" in told
        assert "1-2" in told


# ---- data frames, data sets, batches


def test_a_data_frame_has_a_row_for_each_trajectory():
    pytest.importorskip("pandas")
    frame = rc.open_cassette(DEMO)[2].to_pandas()
    assert len(frame) == 16
    assert frame.score.mean() == 1.1875
    assert frame.response_ids[0].tolist() == [175, 258]


def test_a_data_set_has_all_of_them():
    pytest.importorskip("datasets")
    dataset = rc.open_cassette(DEMO).to_dataset()
    assert len(dataset) == 48
    assert dataset[16]["step"] == 2


def test_batches_feed_a_loss_of_ones_own():
    """GRPO's advantages and a policy gradient, with nothing but torch."""
    losses = []
    for batch in rc.open_cassette(DEMO).batches(device="cpu"):
        scores = batch.scores.view(-1)
        means = torch.stack([scores[batch.groups == group].mean() for group in batch.groups])
        advantages = (scores - means)[:, None]
        log_probs = batch.log_probs.clone().requires_grad_()
        ratio = torch.exp(log_probs - batch.log_probs)
        loss = -(ratio * advantages * batch.response_mask).sum() / batch.response_mask.sum()
        loss.backward()
        assert log_probs.grad.abs().sum() > 0
        losses.append(loss.item())
    assert len(losses) == 3


def test_a_batch_is_what_verl_would_pad():
    """Prompts on the left, responses on the right, positions from the first token."""
    batch = rc.open_cassette(DEMO)[2].to_batch(pad_id=-1)
    assert batch.step == 2
    for number, row in enumerate(batch.trajectories):
        attended = batch.attention_mask[number].bool()
        tokens = [*row.prompt_ids.tolist(), *row.response_ids.tolist()]
        assert batch.input_ids[number][attended].tolist() == tokens
        assert set(batch.input_ids[number][~attended].tolist()) <= {-1}
        assert batch.position_ids[number][attended].tolist() == list(range(len(tokens)))
        length = row.response_length
        assert batch.responses[number, :length].tolist() == row.response_ids.tolist()
        assert batch.response_mask[number].sum() == row.mask.sum()
        assert batch.rewards[number].sum() == row.score


def test_without_tokens_there_is_no_batch():
    cassette = rc.open_cassette(ROOT / "cassettes" / "format-v1" / "plain")
    with pytest.raises(rc.CassetteError, match="no tokens"):
        next(cassette.batches())
