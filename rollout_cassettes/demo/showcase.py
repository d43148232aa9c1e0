"""The demo's two trainings; `python -m rollout_cassettes.demo.showcase` runs them.

The command line starts this as a process of its own, with verl's environment variables set, and
with its output, of which Ray and verl make a lot, going to a file.
"""

from __future__ import annotations

import argparse
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import rollout_cassettes as rc
from rollout_cassettes.demo.assets import make_assets
from rollout_cassettes.demo.config import compose_config
from rollout_cassettes.demo.directory import DemoDirectory
from rollout_cassettes.demo.result import DemoResult, Requests, StepResult, differences
from rollout_cassettes.demo.training import TrainingRun, local_cluster, train

__all__ = ["main"]

#: Longer replies than the tests', in larger groups: generation takes seconds, as it should.
OVERRIDES = ("data.max_response_length=64", "actor_rollout_ref.rollout.n=4")


def main(arguments: list[str] | None = None) -> None:
    """Run both trainings and write the result into the demo's directory."""
    # A shell's background jobs ignore interrupts, and so would this: it is how the launcher ends it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _parser().parse_args(arguments)
    directory = DemoDirectory(options.directory)
    result = _run(directory, options.cassette, options.steps, options.on_existing)
    directory.result.write_text(result.to_json())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where files of the run go")
    parser.add_argument("cassette", type=Path, help="the cassette's directory")
    parser.add_argument("steps", type=int, help="how many steps to train")
    parser.add_argument("--on-existing", choices=("error", "overwrite"), default="error")
    return parser


def _run(
    directory: DemoDirectory, cassette: Path, steps: int, on_existing: Literal["error", "overwrite"]
) -> DemoResult:
    config = compose_config(make_assets(directory.assets), steps, OVERRIDES)
    with local_cluster():
        recording = rc.record(path=cassette, on_existing=on_existing)
        live, recorded = _train_in(recording, config, directory.live_log)
        replaying = rc.replay(mode="cache", path=cassette)
        replayed, played = _train_in(replaying, config, directory.replayed_log)
    return DemoResult(
        path=str(cassette),
        steps=_compare(live, replayed, rc.open_cassette(cassette)),
        start_differences=_differences(live, replayed, 0),
        recording=recorded,
        replay=played,
        live_requests=_requests(live),
        replayed_requests=_requests(replayed),
        live_seconds=live.seconds,
        replayed_seconds=replayed.seconds,
    )


def _train_in(
    block: AbstractContextManager[Any], config: Any, log: Path
) -> tuple[TrainingRun, str]:
    """Train in a with-block; give the run, and what the session says of itself."""
    log.touch()  # says that this training has begun
    with block as session:
        run = train(config, log)
    return run, str(session)


def _compare(live: TrainingRun, replayed: TrainingRun, cassette: Any) -> list[StepResult]:
    return [
        StepResult(
            step=step,
            reward=live.metrics[step]["critic/rewards/mean"],
            loss=live.metrics[step]["actor/pg_loss"],
            live_rollout=live.metrics[step]["timing_s/gen"],
            replayed_rollout=replayed.metrics[step]["timing_s/gen"],
            live_step=live.metrics[step]["timing_s/step"],
            replayed_step=replayed.metrics[step]["timing_s/step"],
            nbytes=cassette[step].nbytes,
            differences=_differences(live, replayed, step),
        )
        for step in live.steps
    ]


def _differences(live: TrainingRun, replayed: TrainingRun, step: int) -> list[str]:
    digests = live.engine.digests.get(step), replayed.engine.digests.get(step)
    return differences(live.metrics[step], replayed.metrics[step], digests)


def _requests(run: TrainingRun) -> Requests:
    return Requests(run.engine.training, run.engine.validation)


if __name__ == "__main__":
    main()
