"""What a session did, in figures and in a sentence."""

from __future__ import annotations

from rollout_cassettes.session.summary import Summary


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
