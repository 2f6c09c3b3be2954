"""Parquet: an evaluation's records as a table for pandas, polars and DuckDB; needs the extra ``report``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from agents.evaluation import GameRecord, replace_bytes
from pyramid_env.errors import PyramidError


def check_parquet() -> None:
    """PyramidError with the way out where pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401 - asked for only to see whether it is there
    except ModuleNotFoundError as error:
        raise PyramidError(f"--parquet: needs the extra 'report': {error}; pip install -e '.[report]'") from None


def write_parquet(path: Path, records: Sequence[GameRecord]) -> None:
    """Write records, one game a row, the columns those of :class:`GameRecord`; ``actions`` is a list of action indices,
    null where they were not kept. The file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {"agent": pa.string(), "rules": pa.string(), "seconds": pa.float64()}
    kinds |= {"won": pa.bool_(), "truncated": pa.bool_(), "actions": pa.list_(pa.int16())}
    schema = pa.schema([(field.name, kinds.get(field.name, pa.int64())) for field in fields(GameRecord)])
    columns = {name: [getattr(record, name) for record in records] for name in schema.names}
    out = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), out)
    replace_bytes(path, out.getvalue())
