"""Trajectories as the tables of other libraries: pandas, Arrow, Hugging Face's datasets."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rollout_cassettes.errors import CassetteError
from rollout_cassettes.trajectories.records import columns
from rollout_cassettes.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import datasets
    import pandas as pd
    import pyarrow as pa


def to_pandas(rows: Iterable[Trajectory]) -> pd.DataFrame:
    """Return a data frame with a row for each trajectory; arrays are numpy's.

    Raises:
        CassetteError: If pandas is not installed.
    """
    frame: pd.DataFrame = needed("pandas").DataFrame(columns(rows))
    return frame


def to_arrow(rows: Iterable[Trajectory]) -> pa.Table:
    """Return an Arrow table with a row for each trajectory; arrays are lists.

    Raises:
        CassetteError: If pyarrow is not installed.
    """
    table: pa.Table = needed("pyarrow").table(columns(rows))
    return table


def to_dataset(rows: Iterable[Trajectory]) -> datasets.Dataset:
    """Return a data set with a row for each trajectory.

    Raises:
        CassetteError: If datasets is not installed.
    """
    library = needed("datasets")
    dataset: datasets.Dataset = library.Dataset(to_arrow(rows))
    return dataset


def needed(package: str) -> Any:
    """Import a package that only this needs.

    Raises:
        CassetteError: If it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise CassetteError(
            f"{package} is not installed.", fixes=[f"pip install {package}"], package=package
        ) from error
