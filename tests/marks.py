"""Marks for all tests of a directory."""

from __future__ import annotations


def mark_all(items, directory, *marks):
    """Add marks to those of the collected tests that are in a directory, or below it."""
    for item in items:
        if directory in item.path.parents:
            for mark in marks:
                item.add_marker(mark)
