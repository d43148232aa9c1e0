"""A report: one HTML file that shows a cassette, or two side by side, in any browser, offline.

What is read of a cassette goes through three hands: :mod:`measures` makes figures of its rows,
:mod:`blocks` packs text and figures, and :mod:`page` puts them into one file with the scripts that
show them. No more than one interaction is in memory at a time.
"""

from rollout_cassettes.report.gathering import Gathered, about, gather
from rollout_cassettes.report.measures import Criteria
from rollout_cassettes.report.page import Part, write_page

__all__ = ["Criteria", "Gathered", "Part", "about", "gather", "write_page"]
