"""Bits: the three questions about a mask that processors answer in one instruction.

Masks are int64 and not negative. Python's own way to ask is left to code that is not compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_MASK_TO_NUMBER: Final = types.int64(types.int64)
_TO_READ: Final = (0, 3, 1)  # of data, to read, not once only
_ZERO_IS_DEFINED: Final = ir.Constant(ir.IntType(1), 0)


def _count_bits(_typing: Any, _bits: Any) -> Any:
    return _MASK_TO_NUMBER, lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


def _lowest_bit(_typing: Any, _bits: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _ZERO_IS_DEFINED)

    return _MASK_TO_NUMBER, emit


def _highest_bit(_typing: Any, _bits: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.sub(ir.Constant(ir.IntType(64), 63), builder.ctlz(arguments[0], _ZERO_IS_DEFINED))

    return _MASK_TO_NUMBER, emit


def _as_index(_typing: Any, _number: Any) -> Any:
    return types.uint64(types.int64), lambda _context, _builder, _signature, arguments: arguments[0]


def _upper_half(_typing: Any, _one: Any, _other: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        one, other = (builder.zext(argument, wide) for argument in arguments)
        return builder.trunc(builder.lshr(builder.mul(one, other), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), emit


def _load_shared(_typing: Any, _address: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return _MASK_TO_NUMBER, emit


def _store_shared(_typing: Any, _address: Any, _number: Any) -> Any:
    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store_atomic(arguments[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


def _swap_shared(_typing: Any, _address: Any, _expected: Any, _number: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        both = builder.cmpxchg(pointer, arguments[1], arguments[2], "acq_rel", "acquire")
        return builder.extract_value(both, 1)

    return types.boolean(types.int64, types.int64, types.int64), emit


def _fetch_ahead(typing: Any, array: Any, row: Any, column: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        found = context.make_array(kind)(context, builder, arguments[0])
        pointer = _utils.get_item_pointer(context, builder, kind, found, arguments[1:], wraparound=False)
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = _utils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(pointer, byte), *(ir.Constant(number, n) for n in _TO_READ)])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), emit


_intrinsic: Final[Any] = intrinsic
_utils: Final[Any] = cgutils  # numba has no type information

count_bits: Callable[[int], int] = _intrinsic(_count_bits)
"""Number of bits set. Callable from kernels only."""

lowest_bit: Callable[[int], int] = _intrinsic(_lowest_bit)
"""Index of the lowest bit set, 64 for none. Callable from kernels only."""

highest_bit: Callable[[int], int] = _intrinsic(_highest_bit)
"""Index of the highest bit set, -1 for none. Callable from kernels only."""

as_index: Callable[[Any], int] = _intrinsic(_as_index)
"""A number that is not negative, as an index: Numba then leaves out the test for one that counts from the array's end,
three instructions at every access. For indexing alone: in sums it would make floats. Callable from kernels only."""

upper_half: Callable[[np.uint64, np.uint64], np.uint64] = _intrinsic(_upper_half)
"""The upper 64 bits of the product of two uint64 of 64 bits. Callable from kernels only."""

load_shared: Callable[[int], int] = _intrinsic(_load_shared)
"""The int64 at an address that another thread may write: read anew each time. Callable from kernels only."""

store_shared: Callable[[int, int], None] = _intrinsic(_store_shared)
"""Write an int64 to an address that another thread reads, after all written before. Callable from kernels only."""

swap_shared: Callable[[int, int, int], bool] = _intrinsic(_swap_shared)
"""Write the last number to an address if the int64 there is the second one, no other thread coming between; was it?
Callable from kernels only."""

fetch_ahead: Callable[[Any, int, int], None] = _intrinsic(_fetch_ahead)
"""Begin to fetch an element of an array (n, m), which will be wanted soon, from memory. Callable from kernels only."""
