"""Numbers that are reserved when a call starts, and given back if it fails."""

from __future__ import annotations

import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cassettes.session.numbering import Numbering


def reserve(numbering, key="a"):
    """Reserve a number; return it, and a function that ends its block well or badly."""
    block = numbering.reserved(key)
    number = block.__enter__()

    def end(*, well):
        if well:
            block.__exit__(None, None, None)
            return
        error = ValueError()
        with contextlib.suppress(ValueError):
            block.__exit__(ValueError, error, None)

    return number, end


def test_numbers_are_given_out_in_order_for_each_key():
    numbering = Numbering(first=1)
    reserved = [reserve(numbering, key) for key in "aabab"]
    assert [number for number, _ in reserved] == [1, 2, 1, 3, 2]
    assert (numbering.next("a"), numbering.next("new")) == (4, 1)


def test_a_failed_block_gives_its_number_back():
    numbering = Numbering()
    with pytest.raises(KeyboardInterrupt), numbering.reserved("a"):
        raise KeyboardInterrupt
    assert reserve(numbering)[0] == 0


def test_a_block_that_is_forgotten_gives_its_number_back():
    """As a coroutine that nobody awaits any more."""
    numbering = Numbering()
    block = numbering.reserved("a")
    block.__enter__()
    assert numbering.next("a") == 1
    del block
    assert numbering.next("a") == 0


def test_a_number_is_not_given_back_while_a_later_one_is_in_use():
    numbering = Numbering()
    (_, end_first), (second, end_second) = reserve(numbering), reserve(numbering)
    end_first(well=False)
    assert numbering.next("a") == 2
    end_second(well=True)
    assert numbering.next("a") == second + 1 == 2


def test_numbers_come_back_once_the_later_ones_do():
    numbering = Numbering()
    ends = [reserve(numbering)[1] for _ in range(3)]
    ends[0](well=True)
    ends[1](well=False)
    ends[2](well=False)
    assert numbering.next("a") == 1


@given(st.data())
def test_no_number_is_ever_in_use_twice(data):
    numbering, used, running = Numbering(), set(), {}
    for _ in range(data.draw(st.integers(0, 40))):
        if running and data.draw(st.booleans()):
            number = data.draw(st.sampled_from(sorted(running)))
            well = data.draw(st.booleans())
            running.pop(number)(well=well)
            if not well:
                used.remove(number)
        else:
            number, end = reserve(numbering)
            assert number not in used
            assert number > max(used, default=-1)
            used.add(number)
            running[number] = end


def test_threads_get_numbers_of_their_own():
    numbering, seen = Numbering(), []

    def work():
        for _ in range(200):
            with numbering.reserved("a") as number:
                seen.append(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1600))
