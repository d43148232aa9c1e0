"""The adapters that sessions use when they name none."""

from __future__ import annotations

import pytest

import rollout_cassettes as rc
from rollout_cassettes.adapters import EntryPoint, registry


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Keep what is registered here out of other tests."""
    monkeypatch.setattr(registry, "_adapters", dict(registry._adapters))
    monkeypatch.setattr(registry, "_names", dict(registry._names))


def test_a_registered_adapter_serves_sessions_that_name_none(engine, path, counted):
    rc.adapters.register(counted)
    with rc.record(path=path) as session:
        engine.generate(["a"])
    assert session.recorded == [1]
    assert rc.adapters.registered()[counted.name] is counted


def test_an_adapter_may_be_replaced_by_one_of_the_same_name_and_entry_points(counted, generate):
    rc.adapters.register(counted)
    rc.adapters.register(generate)
    assert rc.adapters.registered()[counted.name] is generate


def test_a_name_stands_for_the_same_entry_points(engine, counted):
    rc.adapters.register(counted)
    with pytest.raises(ValueError, match="another name="):
        rc.adapters.register(
            rc.adapters.function(f"{engine.__name__}:Engine.generate", name=counted.name)
        )


def test_an_entry_point_belongs_to_one_registered_adapter(engine, counted):
    rc.adapters.register(counted)
    with pytest.raises(ValueError, match=r"intercepts .* already"):
        rc.adapters.register(rc.adapters.function(counted.name, name="another"))


def test_the_registered_adapters_can_not_be_changed_from_outside():
    rc.adapters.registered().clear()
    assert "verl_v1" in rc.adapters.registered()


def test_an_entry_point_is_written_as_its_target():
    assert str(EntryPoint("a", "package.module", "Engine.generate")) == (
        "package.module:Engine.generate"
    )
