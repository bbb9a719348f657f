# SPDX-License-Identifier: Apache-2.0
"""Resizing as Pillow does it, bit for bit, of as much of a picture as is wanted."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from tilewire.errors import InvalidArgument


class Span(NamedTuple):
    """The places [begin, end) of a side that has `size` of them after resizing."""

    size: int
    begin: int
    end: int


def _bilinear(x: Any) -> Any:
    return numpy.maximum(0.0, 1.0 - numpy.abs(x))


def _bicubic(x: Any) -> Any:
    x, a = numpy.abs(x), -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return numpy.where(x < 1, near, numpy.where(x < 2, far, 0.0))


FILTERS: dict[str, tuple[Callable[[Any], Any], float]] = {
    'bilinear': (_bilinear, 1.0), 'bicubic': (_bicubic, 2.0)}
# Pillow computes with weights in fixed point; what they add up to has room in 32 bits.
_BITS = 22
# Elements of an intermediate array.
_MOST_AT_ONCE = 1 << 21


def _reach(have: int, span: Span, interpolation: str) -> tuple[int, int]:
    """The inputs [begin, end) of all outputs of the span."""
    scale = have / span.size
    support = FILTERS[interpolation][1] * max(scale, 1.0)
    begin = max(int((span.begin + 0.5) * scale - support + 0.5), 0)
    return begin, min(int((span.end - 0.5) * scale + support + 0.5), have)


class _Taps(NamedTuple):
    """For the outputs [begin, end): the inputs [first, last) of each, and their weights."""

    begin: int
    end: int
    first: NDArray[Any]
    last: NDArray[Any]
    weights: NDArray[Any]


def _taps(have: int, span: Span, interpolation: str) -> Iterator[_Taps]:
    """The taps of the outputs of the span, as many at once as have room."""
    kernel, support = FILTERS[interpolation]
    scale = have / span.size
    stretch = max(scale, 1.0)
    count = math.ceil(support * stretch) * 2 + 1
    if count > _MOST_AT_ONCE:
        raise InvalidArgument(f'{have} pixels in a line are too many to make {span.size} of them')
    step = max(1, _MOST_AT_ONCE // count)
    for begin in range(span.begin, span.end, step):
        end = min(begin + step, span.end)
        places = (numpy.arange(begin, end) + 0.5) * scale
        first = numpy.maximum((places - support * stretch + 0.5).astype(numpy.int64), 0)
        last = numpy.minimum((places + support * stretch + 0.5).astype(numpy.int64), have)
        inputs = first[:, None] + numpy.arange(count)
        weights = kernel((inputs - places[:, None] + 0.5) * (1.0 / stretch))
        weights = numpy.where(inputs < last[:, None], weights, 0.0)
        weights /= weights.sum(1, keepdims=True)
        fixed = numpy.trunc(weights * (1 << _BITS) + numpy.copysign(0.5, weights))
        yield _Taps(begin, end, first, last, fixed)


def _down(lines: NDArray[Any], have: int, offset: int, span: Span,
          interpolation: str) -> NDArray[Any]:
    """The lines [offset, offset + len(lines)) of `have`, resized to those of the span: each is a
    weighted sum of the lines around its place.
    """
    lines = numpy.ascontiguousarray(lines)
    length = lines[0].size
    flat = lines.reshape(len(lines), length)
    out = numpy.empty((span.end - span.begin, length), numpy.uint8)
    for taps in _taps(have, span, interpolation):
        step = max(1, _MOST_AT_ONCE // max(taps.weights.shape))
        for at in range(0, length, step):
            part = flat[:, at:at + step]
            # Whole numbers below 2^31, which doubles hold exactly.
            sums = numpy.empty((taps.end - taps.begin, part.shape[1]))
            for row, first, last, weights in zip(sums, taps.first, taps.last, taps.weights):
                around = part[first - offset:last - offset].astype(numpy.float64)
                numpy.dot(weights[:last - first], around, out=row)
            rounded = (sums.astype(numpy.int64) + (1 << (_BITS - 1))) >> _BITS
            out[taps.begin - span.begin:taps.end - span.begin, at:at + step] = numpy.clip(rounded, 0, 255)
    return out.reshape(-1, *lines.shape[1:])


def resized(pixels: NDArray[Any], rows: Span, columns: Span, interpolation: str) -> NDArray[Any]:
    """The part of the resized picture [H, W, C] that these spans keep; nothing else is computed."""
    if interpolation not in FILTERS:
        raise InvalidArgument(f"interpolation={interpolation!r}: expected 'bilinear' or 'bicubic'")
    height, width = pixels.shape[:2]
    first, last = (rows.begin, rows.end) if rows.size == height else _reach(height, rows, interpolation)
    pixels = pixels[first:last]
    if columns.size == width:
        pixels = pixels[:, columns.begin:columns.end]
    else:
        pixels = _down(pixels.transpose(1, 0, 2), width, 0, columns, interpolation).transpose(1, 0, 2)
    if rows.size != height:
        pixels = _down(pixels, height, first, rows, interpolation)
    return pixels
