# SPDX-License-Identifier: Apache-2.0
"""BF16, which numpy lacks: arrays of ml_dtypes' bfloat16 where that package is installed, else
arrays of uint16 that hold the upper halves of float32.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy
from numpy.typing import NDArray

from tilewire.errors import InvalidArgument

_BITS = numpy.dtype('<u2')


@functools.lru_cache(None)
def dtype() -> numpy.dtype[Any]:
    """The type of the arrays that hold BF16 here."""
    try:
        import ml_dtypes
    except ImportError:
        return _BITS
    return numpy.dtype(ml_dtypes.bfloat16)


def holds(array: NDArray[Any]) -> bool:
    """Whether the array may stand for BF16: it has one of the two types."""
    return bool(array.dtype == dtype() or array.dtype.newbyteorder('<') == _BITS)


def bits(array: NDArray[Any]) -> NDArray[Any]:
    """The halves of an array that `holds` BF16, little-endian."""
    if array.dtype == dtype():
        return array.view(_BITS)
    return array.astype(_BITS, copy=False)


def to_bfloat16(values: Any) -> NDArray[Any]:
    """The nearest BF16 of each value, to even halfway: what a model with inputs of BF16 takes.

    Args:
        values: float32 or float16; float64 is refused, as it would be rounded twice.

    Returns:
        ml_dtypes' bfloat16 where that package is installed, else its bits as uint16.
    """
    array = numpy.asarray(values)
    if array.dtype.newbyteorder('=') not in (numpy.float32, numpy.float16):
        raise InvalidArgument(f'to_bfloat16 rounds float32 and float16, not {array.dtype}')
    whole = array.astype('<f4').view('<u4')
    lower = (whole >> 16) & 1
    nearest = (whole + (lower + 0x7FFF)) >> 16
    # A NaN stays one, whichever of its bits are set.
    halves = numpy.where(numpy.isnan(array), whole >> 16 | 0x40, nearest).astype(_BITS)
    return halves.view(dtype())


def from_bfloat16(values: NDArray[Any]) -> NDArray[Any]:
    """The same values as float32, from either of the types that `to_bfloat16` answers."""
    array = numpy.asarray(values)
    if not holds(array):
        raise InvalidArgument(f'from_bfloat16 takes bfloat16 or uint16, not {array.dtype}')
    return numpy.asarray(bits(array).astype('<u4') << 16, '<u4').view('<f4')
