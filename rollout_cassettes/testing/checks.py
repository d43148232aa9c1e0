"""The checks, each of one promise. Their names are what a report calls them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from rollout_cassettes.adapters import Adapter, Exchange
from rollout_cassettes.cassette import Cassette
from rollout_cassettes.errors import (
    EntryPointNotFoundError,
    RequestMismatchError,
    StepNotRecordedError,
)
from rollout_cassettes.patching import EntryPoint
from rollout_cassettes.session import record
from rollout_cassettes.testing.bench import (
    Bench,
    NotApplicableError,
    Outcome,
    difference,
    require,
    require_equal,
)
from rollout_cassettes.testing.standing import owner_of
from rollout_cassettes.testing.watch import Watch
from rollout_cassettes.trajectories import Trajectory


def entry_points(bench: Bench) -> None:
    """Each is a function of the framework; a release that lacks one is an error."""
    for point in bench.adapter.entry_points:
        if point.claim is None or point.since or _is_elsewhere(point, bench.adapter):
            continue
        importlib.import_module(point.module)  # a session would wait for a name that is wrong
        with record(path=bench.new_path(), adapters=bench.adapter):
            pass
        owner, name = owner_of(point), point.qualname.rpartition(".")[2]
        if isinstance(owner, type) and any(name in vars(base) for base in owner.__mro__[1:]):
            continue  # another would be found in its place
        with mock.patch.object(owner, name):
            delattr(owner, name)
            try:
                with record(path=bench.new_path(), adapters=bench.adapter):
                    pass
            except EntryPointNotFoundError:
                continue
        raise AssertionError(f"a session opens where {point} is not there")


def recording(bench: Bench) -> None:
    """Every call that gave a response is recorded, whole, under the adapter's name."""
    outcome, cassette = bench.recorded.ended(), bench.cassette()
    answered, kept = outcome.watch.answered, len(cassette.keys)
    require(answered == kept, f"{answered} calls gave responses, and {kept} are recorded")
    require(len(bench.steps) > 1, f"the run has just the steps {bench.steps}: give it two or more")
    for interaction in cassette.interactions():
        interaction.verify()
        name = interaction.manifest.adapter
        require(name == bench.adapter.name, f"{interaction.key} names the adapter {name!r}")


def unrecorded(bench: Bench) -> None:
    """Recording changes nothing: the run is what it is without a session."""
    bench.require_reproducible()
    bench.require_equal_live(bench.plain, bench.recorded)
    bench.require_reproducible()


def replaying(bench: Bench) -> None:
    """A replay is equal to the bit, of every step, and the engine is not asked."""
    outcome = bench.replayed.played(bench.steps)
    _require_not_live(outcome)
    require_equal(bench.recorded, outcome)


def generators(bench: Bench) -> None:
    """A replay leaves the random generators as the live calls left them."""
    if difference(bench.plain.generators, bench.watched.generators):
        raise NotApplicableError("two runs without a session leave the generators in two states")
    found = difference(bench.recorded.generators, bench.replayed.ended().generators)
    require(not found, f"after the replay a generator is in another state: {found}")


def missing(bench: Bench) -> None:
    """A step that is not recorded is refused before the engine is asked for it."""
    last = bench.steps[-1]
    outcome = bench.replay("a replay without the last step", bench.copy(lambda k: k.step != last))
    _require_refusal(outcome, StepNotRecordedError)


def partial(bench: Bench) -> None:
    """With ``on_miss="generate"`` a run goes live after its recorded steps, and is the same."""
    first, others = _halves(bench)
    path = bench.copy(lambda key: key.step in first)
    outcome = bench.replay("a replay of the first steps", path, on_miss="generate").played(first)
    generated = outcome.session.generated
    require(generated == others, f"{generated} were generated live, and not {others}")
    _require_fewer(bench, outcome)
    bench.require_equal_live(bench.recorded, outcome)


def filling(bench: Bench) -> None:
    """With ``on_miss="record"`` what is missing is recorded, and a replay of all is the same."""
    first, others = _halves(bench)
    path = bench.copy(lambda key: key.step in first)
    live = bench.replay("a replay that records the rest", path, on_miss="record").played(first)
    recorded = live.session.recorded
    require(recorded == others, f"{recorded} were recorded, and not {others}")
    again = bench.replay("the replay of what it left", path).played(bench.steps)
    _require_not_live(again)
    require_equal(live, again)


def empty(bench: Bench) -> None:
    """An empty cassette is filled, with ``on_miss="record"``, by a run that is all live."""
    path = bench.new_path()
    path.mkdir()
    outcome = bench.replay("a replay of an empty cassette", path, on_miss="record").played([])
    keys = Cassette(path).keys
    require(keys == bench.keys, f"{keys} were recorded, and not {bench.keys}")
    bench.require_equal_live(bench.plain, outcome)


def phases(bench: Bench) -> None:
    """A session that names no phases covers the adapter's; the others stay live."""
    own = bench.adapter.phases
    covered = [phase for phase in bench.phases if own is None or phase in own]
    if len(bench.phases) == 1:
        raise NotApplicableError(f"all calls of the run are of the phase {bench.phases[0]!r}")
    path = bench.new_path()
    live = bench.record("the run recorded without phases=", path, phases=None).ended()
    kept = sorted({key.phase for key in Cassette(path).keys})
    require(kept == sorted(covered), f"the phases {kept} were recorded, and not {sorted(covered)}")
    again = bench.replay("its replay", path, phases=None).ended()
    gone = sorted(set(again.watch.phases) & set(covered))
    require(not gone, f"calls of the phases {gone} went live in a replay")
    bench.require_equal_live(live, again)


def repeating(bench: Bench) -> None:
    """In repeat mode the first step serves for all, fitted to what each asks for."""
    starts = {min(key.step for key in bench.keys if key.phase == phase) for phase in bench.phases}
    path = bench.copy(lambda key: key.step in starts)
    outcome = bench.replay("a replay in repeat mode", path, mode="repeat")
    if any(isinstance(error, NotImplementedError) for error in _chain(outcome.error)):
        raise NotApplicableError("restore() fits nothing: it raised NotImplementedError")
    _require_not_live(outcome.played(bench.steps))


def mismatches(bench: Bench) -> None:
    """Other prompts than those recorded are noticed, and the engine is not asked for them."""
    interaction = bench.cassette().interactions()[0]
    if bench.adapter.rows(interaction.request) is None:
        raise NotApplicableError("rows() gives None: requests are not compared")
    if bench.make_other is None:
        raise NotApplicableError("no make_other= was given, which asks for other prompts")
    outcome = bench.replay("a replay with other prompts", bench.path, make=bench.make_other)
    _require_refusal(outcome, RequestMismatchError)


def exceptions(bench: Bench) -> None:
    """A run whose engine fails keeps what was finished, and raises just what the engine raised."""
    last = len(bench.watched.watch.places) - 1
    path, watch = bench.new_path(), Watch(bench.adapter, failing=last)
    session = record(path=path, adapters=bench.adapter, phases=bench.phases)
    outcome = bench.run("a run whose engine fails", session, watch=watch)
    require(outcome.error is not None, "the engine failed, and the run came to its end")
    if outcome.error is not watch.error:
        error = outcome.error
        told = f"the engine's error came out as {type(error).__name__}: {error}"
        raise AssertionError(told) from error
    cassette = Cassette(path)
    answered, kept = watch.answered, len(cassette.keys)
    require(answered == kept, f"{answered} calls gave responses, and {kept} are recorded")
    for interaction in cassette.interactions():
        interaction.verify()
    _require_unchanged(outcome)


def identity(bench: Bench) -> None:
    """After a session each entry point is the very object that it was, in subclasses too."""
    for outcome in (bench.recorded, bench.replayed):
        _require_unchanged(outcome)


def trajectories(bench: Bench) -> None:
    """What is recorded can be looked at, without the framework."""
    found = 0
    for interaction in bench.cassette(numpy=True).interactions():
        recorded = Exchange(interaction.request, interaction.response)
        rows: Any = bench.adapter.trajectories(recorded)
        good = isinstance(rows, list) and all(isinstance(row, Trajectory) for row in rows)
        require(good, f"trajectories() gave {rows!r} for {interaction.key}")
        found += len(rows)
    if not found:
        raise NotApplicableError("trajectories() gave none: who looks at a recording sees no rows")


FUNCTIONS: dict[str, Callable[[Bench], None]] = {
    "entry points": entry_points,
    "recording": recording,
    "unrecorded": unrecorded,
    "replay": replaying,
    "generators": generators,
    "missing": missing,
    "partial": partial,
    "filling": filling,
    "empty": empty,
    "phases": phases,
    "repeat": repeating,
    "mismatch": mismatches,
    "exceptions": exceptions,
    "identity": identity,
    "trajectories": trajectories,
}

CHECKS = tuple(FUNCTIONS)
"""The names of all checks."""


# ---- what several of them ask


def _is_elsewhere(point: EntryPoint, adapter: Adapter) -> bool:
    """Tell whether a point is of a package that is not here, and the adapter has one that is."""
    others = {p.module for p in adapter.entry_points if p.framework != point.framework}
    return any(map(_is_here, others)) and not _is_here(point.module.partition(".")[0])


def _is_here(module: str) -> bool:
    if module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is what it is in
        return False


def _halves(bench: Bench) -> tuple[list[int], list[int]]:
    middle = max(1, len(bench.steps) // 2)
    return bench.steps[:middle], bench.steps[middle:]


def _require_not_live(outcome: Outcome) -> None:
    went = len(outcome.watch.places)
    require(went == 0, f"{went} calls of entry points went live in {outcome.name}")
    made = outcome.rollouts
    require(made == 0, f"the engine made {made} rollouts in {outcome.name}")


def _require_fewer(bench: Bench, outcome: Outcome) -> None:
    made, usual = outcome.rollouts, bench.recorded.rollouts
    require(0 < made < usual, f"the engine made {made} rollouts, of {usual}, in {outcome.name}")


def _require_refusal(outcome: Outcome, kind: type[Exception]) -> None:
    refusal = outcome.session.refusal
    raised = refusal or outcome.error
    told = "came to its end" if raised is None else f"raised {type(raised).__name__}: {raised}"
    require(isinstance(refusal, kind), f"{outcome.name} {told}, and no {kind.__name__}")
    require(outcome.error is not None, f"{outcome.name} came to its end all the same")
    _require_not_live(outcome)


def _require_unchanged(outcome: Outcome) -> None:
    changed = ", ".join(map(str, outcome.changed))
    require(not changed, f"after {outcome.name} something else stands at {changed}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
