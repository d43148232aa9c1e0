"""What a session did, in figures and in a sentence."""

from __future__ import annotations

import pytest

from rollout_cassettes.session.summary import Summary, readable_bytes, readable_seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.349, "0.35 s"),
        (9.994, "9.99 s"),
        (9.996, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 m 00 s"),
        (751, "12 m 31 s"),
        (3599.7, "1 h 00 m"),
        (11100, "3 h 05 m"),
        (360000, "100 h 00 m"),
    ],
)
def test_durations_are_written_as_people_do(seconds, text):
    assert readable_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (4_400_000, "4.4 MB"),
        (10**15, "1000.0 TB"),
    ],
)
def test_sizes_are_written_as_people_do(count, text):
    assert readable_bytes(count) == text


def test_a_replay_in_a_sentence():
    summary = Summary(played=[1, 2, 3], seconds=751)
    assert summary.of_replay() == (
        "3 steps replayed, 0 generated live, 12 m 31 s of generation saved"
    )


def test_all_that_a_replay_may_have_to_tell():
    summary = Summary(
        played=[1], generated=[2], recorded=[3], missing=[4, 5], unplayed=[9], seconds=1
    )
    assert summary.of_replay() == (
        "1 step replayed, 1 generated live, 1 newly recorded, 1.00 s of generation saved; "
        "missing: steps 4-5; not asked for: step 9"
    )


def test_all_that_a_recording_may_have_to_tell():
    summary = Summary(
        recorded=[1, 2],
        missing=[3],
        faults={"step 3": "OSError: [Errno 28] No space left on device"},
        omissions={"step 2": ["response/tool (a my.Tool)"]},
        seconds=90,
        nbytes=4_400_000,
    )
    assert summary.of_recording() == (
        "2 steps recorded, 4.4 MB, 1 m 30 s of generation kept; "
        "step 3 was not recorded (OSError: [Errno 28] No space left on device); "
        "step 2 was recorded without response/tool (a my.Tool); missing: step 3"
    )
