"""Bounds: reads what is proven about the benchmark's deals from the files that ship with the package."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from pyramid_env.benchmark.columns import Bounds, DealBounds
from pyramid_env.benchmark.splits import SPLITS
from pyramid_env.errors import PyramidError
from pyramid_env.rules import PRESETS, Rules
from pyramid_env.rules import rules as read_rules
from pyramid_env.solver.columns import DAMAGE
from pyramid_env.solver.result import Limits

__all__ = ["DATA", "SHIPPED", "Bounds", "DealBounds", "bounds", "file_name", "read_bounds", "switches", "write_bounds"]

SHIPPED: Final = ("pyramid", "one_pass", "solitaire13_three_piles", "till_dawn", "double_pyramid", "microsoft")
"""Presets whose bounds ship with the package, for both splits."""

DATA: Final = Path(__file__).parent / "data"
"""Where the files are; ``python -m pyramid_env.benchmark.build`` makes them."""

_FORMAT: Final = "pyramid_env.bounds"
_FILE_VERSION: Final = 1
_QUESTIONS: Final = ("win", "earliest", "score", "steps")
_SMALL: Final = (np.int8, np.int16, np.int32, np.int64)


def bounds(rules: Rules | str = "pyramid", split: str = "test") -> Bounds:
    """What is proven about each deal of a split, from the package's own files; read once, then kept.

    Args:
        rules: a preset of SHIPPED, or rules with the same switches: neither a preset's name nor the games of a match
            change an answer, so ``solitaire13`` has the bounds of ``one_pass``.
        split: ``"test"`` or ``"validation"``.

    Raises:
        PyramidError: unknown rules or split, rules without stored bounds, or a file that is missing, damaged, or made
            under other rules.
    """
    asked = read_rules(rules)
    if not isinstance(split, str) or split not in SPLITS:
        raise PyramidError(f"bounds: unknown split {split!r}; known: {', '.join(SPLITS)}")
    for preset in SHIPPED:
        if switches(PRESETS[preset]) == switches(asked):
            return _shipped(preset, split)
    raise PyramidError(
        f"bounds: none are stored for {asked}; stored: {', '.join(SHIPPED)}, as they are, with no switch changed. "
        "pyramid_env.solver.solve_many proves them for any rules"
    )


@lru_cache
def _shipped(preset: str, split: str) -> Bounds:
    return read_bounds(DATA / file_name(preset, split), PRESETS[preset], split)


def file_name(preset: str, split: str) -> str:
    """The name of a preset's file for a split."""
    return f"{preset}_{split}.npz"


def switches(rules: Rules) -> dict[str, Any]:
    """The switches that an answer depends on: all but the preset's name and the games of a match."""
    return {name: value for name, value in rules.to_dict().items() if name not in ("preset", "match_games")}


# ---- the file: a compressed .npz; ``header`` is JSON text as bytes; each question is its low end and high - low ------


def write_bounds(made: Bounds, path: Path) -> int:
    """Write bounds to a file, whole or not at all; the same bounds make the same bytes. Returns the file's size.

    Raises:
        OSError: it cannot be written.
    """
    columns = {"header": np.frombuffer(json.dumps(_header(made), indent=1).encode(), np.uint8)}
    for question in _QUESTIONS:
        low, high = getattr(made, f"{question}_low"), getattr(made, f"{question}_high")
        if low is not None:
            columns[question] = _smallest(low)
            columns[f"{question}_open"] = _smallest(high.astype(np.int64) - low)
    columns["states"] = _smallest(made.states)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=9) as members:
                for name, column in columns.items():
                    member = io.BytesIO()
                    np.lib.format.write_array(member, column, allow_pickle=False)
                    # A ZipInfo of our own, so that the time of writing is not in the file.
                    members.writestr(ZipInfo(f"{name}.npy"), member.getvalue(), ZIP_DEFLATED, 9)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path.stat().st_size


def read_bounds(path: Path, rules: Rules, split: str) -> Bounds:
    """Read what :func:`write_bounds` wrote, and check all of it.

    Args:
        path: the file.
        rules: whose bounds are expected.
        split: the split that is expected, with exactly its deals.

    Raises:
        PyramidError: no such file, damaged, of another format, about other rules or deals, or with columns that
            contradict each other.
    """
    if not path.is_file():
        raise PyramidError(
            f"{path}: bounds of {rules}, {split}: no such file; make it with "
            f"python -m pyramid_env.benchmark.build --rules {rules} --split {split} --folder WORK"
        )
    try:
        with ZipFile(path) as members:
            columns = {name.removesuffix(".npy"): _member(members, name) for name in members.namelist()}
        header = json.loads(columns.pop("header").tobytes().decode())
        _check_header(header, rules, split)
        return _from_columns(columns, header, rules, split)
    except DAMAGE as error:
        raise PyramidError(f"{path}: expected bounds of {rules}, {split}; cannot take the file: {error}") from error


def _header(made: Bounds) -> dict[str, Any]:
    from pyramid_env import __version__

    return {
        "format": _FORMAT,
        "file_version": _FILE_VERSION,
        "package": __version__,
        "solver_version": made.solver_version,
        "rules": made.rules.to_dict(),
        "split": made.split,
        "first_deal": int(made.deals[0]),
        "deals": len(made),
        "limits": {str(objective): asdict(limits) for objective, limits in made.limits.items()},
    }


def _check_header(header: Any, rules: Rules, split: str) -> None:
    """ValueError (or what a header of another shape raises) unless a file is what is asked for."""
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"expected the format {_FORMAT}, got another")
    if header.get("file_version") != _FILE_VERSION:
        raise ValueError(f"expected file version {_FILE_VERSION}, got {header.get('file_version')!r}")
    there, wanted = switches(Rules(**header["rules"])), switches(rules)
    other = [f"{name}: expected {wanted[name]}, got {there[name]}" for name in wanted if wanted[name] != there[name]]
    if other:
        raise ValueError(f"it was made under other rules; {'; '.join(other)}")
    deals = SPLITS[split]
    found = header["split"], header["first_deal"], header["deals"]
    if found != (split, deals.start, len(deals)):
        raise ValueError(f"expected {len(deals)} deals of {split} from {deals.start}, got {found}")
    if type(header["solver_version"]) is not int:
        raise ValueError(f"expected a whole number as solver version, got {header['solver_version']!r}")


def _from_columns(columns: dict[str, NDArray[Any]], header: Mapping[str, Any], rules: Rules, split: str) -> Bounds:
    ends: dict[str, NDArray[Any]] = {}
    for question in _QUESTIONS:
        if question in header["limits"]:
            low = columns.pop(question).astype(np.int64)
            ends[f"{question}_low"], ends[f"{question}_high"] = low, low + columns.pop(f"{question}_open")
    found = Bounds(
        rules=rules,
        split=split,
        deals=np.arange(header["deals"], dtype=np.int64) + header["first_deal"],
        states=columns.pop("states"),
        solver_version=header["solver_version"],
        limits=MappingProxyType({name: Limits(**limits) for name, limits in header["limits"].items()}),
        **ends,
    )
    if columns:
        raise ValueError(f"unknown columns {', '.join(columns)}")
    return found


def _member(members: ZipFile, name: str) -> NDArray[Any]:
    column = np.lib.format.read_array(io.BytesIO(members.read(name)), allow_pickle=False)  # read checks the CRC32
    if column.dtype.kind not in "iu" or column.ndim != 1:
        raise ValueError(f"{name}: expected a row of whole numbers, got {column.dtype} of shape {column.shape}")
    return column


def _smallest(column: NDArray[Any]) -> NDArray[Any]:
    """The column in the smallest signed dtype that holds it, little-endian."""
    for dtype in _SMALL:
        small = column.astype(np.dtype(dtype).newbyteorder("<"))
        if np.array_equal(small, column):
            return small
    raise AssertionError("int64 holds every column")
