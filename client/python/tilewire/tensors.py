# SPDX-License-Identifier: Apache-2.0
"""Arrays as they travel: datatypes, shapes in both layouts, bytes, and what does not fit a model."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from tilewire.errors import Error, InvalidArgument
from tilewire.metadata import TensorMetadata

# Little-endian, as on the wire. FP16 is IEEE's; numpy has no BF16.
DTYPES = {
    'BOOL': '?', 'INT8': 'i1', 'INT16': '<i2', 'INT32': '<i4', 'INT64': '<i8', 'UINT8': 'u1',
    'UINT16': '<u2', 'UINT32': '<u4', 'UINT64': '<u8', 'FP16': '<f2', 'FP32': '<f4', 'FP64': '<f8'}
_NAMES = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}
LAYOUTS = ('nchw', 'nhwc')


def datatype_of(array: numpy.ndarray) -> str:
    """The protocol's name of the array's type: "FP32"; numpy's name if the protocol has none."""
    return _NAMES.get(array.dtype.newbyteorder('<'), str(array.dtype))


def text_of(datatype: str, shape: Sequence[int]) -> str:
    """A tensor in words: "FP32[-1,3,224,224]"."""
    return f'{datatype}[{",".join(map(str, shape))}]'


def has_layout(shape: Sequence[int]) -> bool:
    """Whether a tensor of this rank is [N, C, spatial...], so that a layout means anything."""
    return 3 <= len(shape) <= 5


def in_layout(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """The shape [N, C, spatial...] in the order of `layout`."""
    if layout == 'nhwc' and has_layout(shape):
        return (shape[0], *shape[2:], shape[1])
    return tuple(shape)


def check_layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise InvalidArgument(f"layout {layout!r}: expected 'nchw' or 'nhwc'")


def _matches(shape: Sequence[int], expected: Sequence[int]) -> bool:
    if tuple(expected) == (-1,):
        return True  # this is also how a server describes a tensor of any rank
    return len(shape) == len(expected) and all(
        size == want or want < 0 <= size for size, want in zip(shape, expected))


def check_input(array: numpy.ndarray, tensor: TensorMetadata, layout: str) -> None:
    """Raises InvalidArgument if the model does not take this array; the text says what it takes."""
    expected = in_layout(tensor.shape, layout)
    datatype = datatype_of(array)
    shape_fits = _matches(array.shape, expected)
    if shape_fits and datatype == tensor.datatype:
        return
    hint = ''
    other = LAYOUTS[layout == 'nchw']
    if shape_fits and tensor.datatype in DTYPES:
        hint = f"; convert it with .astype('{numpy.dtype(DTYPES[tensor.datatype])}')"
    elif not shape_fits and _matches(array.shape, in_layout(tensor.shape, other)):
        hint = f"; it looks like layout='{other}'"
    elif _matches((1, *array.shape), expected):
        hint = '; it lacks the batch: send x[None]'
    raise InvalidArgument(f"input '{tensor.name}': expected {text_of(tensor.datatype, expected)}, "
                          f'got {text_of(datatype, array.shape)}{hint}')


def by_name(inputs: Any, expected: Sequence[TensorMetadata]) -> dict[str, numpy.ndarray]:
    """The arrays by the model's names of its inputs, in the model's order."""
    names = [tensor.name for tensor in expected]
    listed = ', '.join(f"'{name}'" for name in names)
    if not isinstance(inputs, Mapping):
        if len(names) != 1:
            raise InvalidArgument(f'the model has {len(names)} inputs: give them by name: {listed}')
        inputs = {names[0]: inputs}
    for name in inputs:
        if name not in names:
            raise InvalidArgument(f"input '{name}': unknown; the model has {listed}")
    for name in names:
        if name not in inputs:
            raise InvalidArgument(f"input '{name}' is missing")
    return {name: numpy.asarray(inputs[name]) for name in names}


def to_bytes(array: numpy.ndarray) -> bytes:
    """Row-major, little-endian, without padding."""
    return array.astype(array.dtype.newbyteorder('<'), copy=False).tobytes()


def from_bytes(content: bytes, datatype: str, shape: Sequence[int], name: str) -> numpy.ndarray:
    """An array that may be written to."""
    if datatype not in DTYPES:
        raise Error(f"output '{name}': numpy has no type for {datatype}")
    dtype = numpy.dtype(DTYPES[datatype])
    if len(content) != int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize:
        raise Error(f"output '{name}': {len(content)} bytes are not {text_of(datatype, shape)}")
    return numpy.frombuffer(bytearray(content), dtype).reshape(shape)
