"""A reward that whole groups often agree on, so that groups are filtered."""

from __future__ import annotations


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """Score a reply by whether it has an even number of characters."""
    return {"score": float(len(solution_str) % 2), "acc": float(len(solution_str) % 2)}
