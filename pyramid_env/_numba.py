"""The one decorator that holds every Numba option, with the reason for each."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


@lru_cache
def _package_stamp() -> tuple[str, int]:
    """A digest of the package's sources. Numba's own stamp covers the one file a kernel stands in, although a kernel's
    machine code also holds the kernels it calls from other files; after an update of those it would run stale code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest(), 0


def kernel(function: Function) -> Function:
    """Compile a function in nopython mode on its first call.

    cache: the second start loads machine code from disk. nogil: threads may run kernels side by side.
    error_model numpy: no test for division by zero in inner loops. Overflow wraps, as in C.
    """
    with warnings.catch_warnings():
        # Where no folder can be written Numba refuses the cache; compiling anew at each start is right then.
        warnings.simplefilter("ignore", numba.NumbaWarning)
        try:
            compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError:
            return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
    stamped = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stamped is not None and hasattr(stamped, "_source_stamp"):
        stamped._source_stamp = _package_stamp()
    return cast(Function, compiled)
