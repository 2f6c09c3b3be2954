"""The one decorator that holds every Numba option, with the reason for each."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

from pyramid_env._compiling import announce

Function = TypeVar("Function", bound=Callable[..., object])

_NJIT: Final[Any] = numba.njit  # its type hints leave out _nrt
_PACKAGE: Final = Path(__file__).resolve().parent
_IMPORTS: Final = re.compile(rb"^from pyramid_env([\w.]*) import (.*)$", re.MULTILINE)
"""Imports at the top level of a file: what a kernel of that file can call or read a constant from."""

announce()


@lru_cache
def _sources(path: Path) -> frozenset[Path]:
    """A source file of the package and all that it imports from the package, directly or not."""
    found = {path}
    waiting = [path]
    while waiting:
        for module, names in _IMPORTS.findall(waiting.pop().read_bytes()):
            folder = _PACKAGE.joinpath(*module.decode().split("."))
            modules = {folder, *(folder / name for name in re.findall(r"\w+", names.decode()))}
            new = {module.with_suffix(".py") for module in modules if module.with_suffix(".py").exists()} - found
            found |= new
            waiting += new
    return frozenset(found)


@lru_cache
def _stamp(path: Path) -> tuple[str, int]:
    """A digest of all sources that the kernels of a file are made from.

    Numba's own stamp covers that one file alone, although machine code also holds the kernels it calls from other
    files: after a change to those it would run stale code.
    """
    digest = hashlib.sha256()
    for source in sorted(_sources(path)):
        digest.update(source.read_bytes())
    return digest.hexdigest(), 0


def kernel(function: Function) -> Function:
    """Compile a function that neither makes nor returns arrays, in nopython mode, on its first call.

    cache: the second start loads machine code from disk. nogil: threads may run kernels side by side. error_model
    numpy: no test for division by zero in inner loops. Integers wrap on overflow, as in C. _nrt: without Numba's
    reference counting, which otherwise takes two atomic operations for each array of each tuple that one kernel hands
    to another (measured: half of the solver's time). What is lost with it is making arrays, and handing them back: a
    caller that counts references would give up one that was never taken. Such functions are allocating kernels.
    """
    return _compiled(function, _nrt=False)


def allocating_kernel(function: Function) -> Function:
    """As :func:`kernel`, for a function that makes arrays of its own or returns arrays."""
    return _compiled(function)


def inlined_kernel(function: Function) -> Function:
    """As :func:`kernel`, for a function that becomes part of those that call it.

    A call hands over tuples of arrays field by field, seven words an array: dear where it is made for every position.
    """
    return _compiled(function, _nrt=False, inline="always")


def joined_kernel(function: Function) -> Function:
    """As :func:`inlined_kernel`, but it becomes part of its callers only when these are machine code.

    A source that grows by what is inlined takes Numba a time that grows with its square. Where much is inlined, and
    twice, joining is right: the step of many games takes 7 s to compile instead of 157 (measured). Large kernels that
    are handed many arrays are still a little faster inlined, so they are, and are made of joined ones. One that returns
    arrays must be inlined: to a caller that counts references, a joined one hands back what it never took.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def joined(function: Function) -> Function:
    """A kernel once more, as :func:`joined_kernel` compiles it: for those callers alone that want it."""
    return cast(Function, joined_kernel(cast(Any, function).py_func))


def _compiled(function: Function, **options: bool | str) -> Function:
    with warnings.catch_warnings():
        # Where no folder can be written Numba refuses the cache; compiling anew at each start is right then.
        warnings.simplefilter("ignore", numba.NumbaWarning)
        try:
            compiled = _NJIT(cache=True, nogil=True, error_model="numpy", **options)(function)
        except RuntimeError:
            return cast(Function, _NJIT(nogil=True, error_model="numpy", **options)(function))
    stamped = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stamped is not None and hasattr(stamped, "_source_stamp"):
        stamped._source_stamp = _stamp(Path(function.__code__.co_filename).resolve())
    return cast(Function, compiled)
