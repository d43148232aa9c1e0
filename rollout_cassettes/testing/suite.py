"""The suite: all checks of an adapter, and one report of them."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from rollout_cassettes.adapters import Adapter
from rollout_cassettes.session import options
from rollout_cassettes.session.random_state import RandomState, restore
from rollout_cassettes.testing.bench import Bench, NotApplicableError
from rollout_cassettes.testing.checks import CHECKS, FUNCTIONS
from rollout_cassettes.testing.run import MakeRun

PASSED = "passed"

_FAILED = "FAILED: "


def check_adapter(
    adapter: Adapter | str,
    make_run: MakeRun,
    *,
    make_other: MakeRun | None = None,
    checks: Iterable[str] | None = None,
) -> dict[str, str]:
    """Check that an adapter keeps what this library promises, with runs of its framework.

    Some fifteen runs are made, one after the other, in this process and in directories that are
    removed. Before each, the random generators of Python, numpy and torch are seeded alike.

    Args:
        adapter: The adapter, or the name of a known one.
        make_run: Builds a fresh trainer with a fresh engine, each time in the same initial state,
            and returns a :class:`Run` of it: of two steps or more, with the same prompts each time.
        make_other: Makes the same run with other prompts, as many, for an adapter that compares
            requests.
        checks: The checks to make, of :data:`CHECKS`; None for all.

    Returns:
        What each check came to: ``"passed"``, or why it could not be made.

    Raises:
        AssertionError: If checks fail, with the outcome of all of them.
        ValueError: If there is no check of a name, or no adapter.
    """
    chosen = list(CHECKS if checks is None else checks)
    unknown = sorted(set(chosen) - set(CHECKS))
    if unknown:
        raise ValueError(f"there are no checks {unknown}: there are {', '.join(CHECKS)}")
    known = (options.adapters(adapter) or [])[0]
    outcomes: dict[str, str] = {}
    failures: dict[str, Exception] = {}
    before = RandomState.now()
    with tempfile.TemporaryDirectory(prefix="rollout-cassettes-") as directory:
        bench = Bench(known, make_run, make_other, Path(directory))
        for name in chosen:
            try:
                FUNCTIONS[name](bench)
                outcomes[name] = PASSED
            except NotApplicableError as reason:
                outcomes[name] = f"not checked: {reason}"
            except AssertionError as error:
                failures[name], outcomes[name] = error, f"{_FAILED}{error}"
            except Exception as error:  # noqa: BLE001 - the adapter's, or the framework's
                failures[name], outcomes[name] = error, f"{_FAILED}{type(error).__name__}: {error}"
    for generator, state in before.states.items():
        restore(generator, state)
    if failures:
        first = next(iter(failures.values()))
        raise AssertionError(_report(known.name, outcomes, len(failures))) from first
    return outcomes


def _report(name: str, outcomes: Mapping[str, str], failed: int) -> str:
    """Return the outcomes as a table, one check a row; what several checks came upon is told once."""
    first = {told: check for check, told in reversed(list(outcomes.items()))}
    told_once = {
        check: f"{_FAILED}as {first[told]!r}"
        if told.startswith(_FAILED) and first[told] != check
        else told
        for check, told in outcomes.items()
    }
    width = max(map(len, outcomes))
    rows = [
        textwrap.indent(text, " " * (width + 4)).replace(" " * (width + 2), f"  {check:{width}}", 1)
        for check, text in told_once.items()
    ]
    return "\n".join([f"{name!r} fails {failed} of {len(outcomes)} checks:", *rows])
