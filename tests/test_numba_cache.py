"""Compiled code on disk is never older than the sources it was made from, whichever file they stand in."""

import importlib
import pkgutil
from pathlib import Path

import numba.core.dispatcher
import pytest

import pyramid_env
from pyramid_env._numba import _sources, _stamp

MODULES = [m.name for m in pkgutil.walk_packages(pyramid_env.__path__, "pyramid_env.") if "__main__" not in m.name]


def kernels_of(module):
    return {name: value for name, value in vars(module).items() if isinstance(value, numba.core.dispatcher.Dispatcher)}


@pytest.mark.parametrize("name", MODULES)
def test_the_stamp_covers_every_file_a_kernel_calls_into(name):
    module = importlib.import_module(name)
    covered = _sources(Path(module.__file__).resolve())
    for kernel in kernels_of(module).values():
        assert Path(kernel.py_func.__code__.co_filename).resolve() in covered, kernel


def test_kernels_carry_the_stamp():
    from pyramid_env import kernels

    stamp = _stamp(Path(kernels.__file__).resolve())
    found = kernels_of(kernels)
    assert len(found) > 15
    assert all(kernel._cache._cache_file._source_stamp == stamp for kernel in found.values())


@pytest.mark.parametrize("name", MODULES)
def test_only_allocating_kernels_return_arrays(name):
    """Without reference counting an array that is handed back would be freed while it is in use."""
    module = importlib.import_module(name)
    for kernel in kernels_of(module).values():
        if kernel.targetoptions.get("_nrt", True):
            continue
        result = str(kernel.py_func.__annotations__["return"])
        assert not any(word in result for word in ("NDArray", "Table", "Nodes", "Memory", "Instance")), kernel
        if kernel.targetoptions.get("forceinline"):
            assert result != "Any", kernel  # as a Table is said to be where it becomes part of the caller's source
