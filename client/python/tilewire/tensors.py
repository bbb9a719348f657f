# SPDX-License-Identifier: Apache-2.0
"""Arrays as they travel: datatypes, shapes in both layouts, bytes, and what does not fit a model."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

from tilewire import arguments, bfloat16
from tilewire.errors import Error, InvalidArgument, ResourceExhausted
from tilewire.metadata import TensorMetadata

# Where the channels of a tensor of rank 3 to 5 stand.
Layout = Literal['nchw', 'nhwc']

# Little-endian, as on the wire. FP16 is IEEE's; BF16 has a module of its own.
DTYPES = {
    'BOOL': '?', 'INT8': 'i1', 'INT16': '<i2', 'INT32': '<i4', 'INT64': '<i8', 'UINT8': 'u1',
    'UINT16': '<u2', 'UINT32': '<u4', 'UINT64': '<u8', 'FP16': '<f2', 'FP32': '<f4', 'FP64': '<f8'}
_NAMES = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}
LAYOUTS = ('nchw', 'nhwc')

# A message is shorter than 2 GiB, or protobuf cannot write it; what is not tensors fits in the rest.
_MOST_BYTES = (1 << 31) - (1 << 20)


def datatype_of(array: NDArray[Any]) -> str:
    """The protocol's name of the array's type: "FP32"; numpy's name if the protocol has none."""
    if array.dtype == bfloat16.dtype() != numpy.uint16:
        return 'BF16'
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


def check_layout(layout: Any, name: str = 'layout') -> None:
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise arguments.refused(name, layout, "'nchw' or 'nhwc'")


def _matches(shape: Sequence[int], expected: Sequence[int]) -> bool:
    if tuple(expected) == (-1,):
        return True  # this is also how a server describes a tensor of any rank
    return len(shape) == len(expected) and all(
        size == want or want < 0 <= size for size, want in zip(shape, expected))


def _hint(shape: Sequence[int], tensor: TensorMetadata, layout: str) -> str:
    """A hint for an array of this shape that does not fit, if that can be told."""
    expected, other = in_layout(tensor.shape, layout), LAYOUTS[layout == 'nchw']
    if _matches(shape, expected):
        if tensor.datatype == 'BF16':
            return '; tilewire.to_bfloat16(x) rounds float32'
        if tensor.datatype in DTYPES:
            return f"; convert it with numpy.asarray(x, '{numpy.dtype(DTYPES[tensor.datatype])}')"
    elif _matches(shape, in_layout(tensor.shape, other)):
        return f"; it looks like layout='{other}'"
    elif _matches((1, *shape), expected):
        return '; it lacks the batch: send x[None]'
    elif _matches((*expected[:1], *shape[1:]), expected) and tuple(shape[:1]) > expected[:1]:
        return f'; batch={expected[0]} sends so many rows at a time'
    return ''


def fits(array: NDArray[Any], tensor: TensorMetadata, layout: str, rows: int | None = None) -> bool:
    """Whether the model takes this array, or so many `rows` of it at a time."""
    shape = array.shape if rows is None else (rows, *array.shape[1:])
    same_type = datatype_of(array) == tensor.datatype
    return ((same_type or tensor.datatype == 'BF16' and bfloat16.holds(array)) and
            _matches(shape, in_layout(tensor.shape, layout)))


def check_input(array: NDArray[Any], tensor: TensorMetadata, layout: str,
                rows: int | None = None) -> None:
    """Raises InvalidArgument if the array does not fit; the text says what the model takes."""
    if fits(array, tensor, layout, rows):
        return
    shape = array.shape if rows is None else (rows, *array.shape[1:])
    raise InvalidArgument(
        f"input '{tensor.name}': "
        f'expected {text_of(tensor.datatype, in_layout(tensor.shape, layout))}, '
        f'got {text_of(datatype_of(array), array.shape)}{_hint(shape, tensor, layout)}')


def array_of(what: str, value: Any) -> NDArray[Any]:
    """The value as numpy makes an array of it, which raises whatever the value's type does."""
    try:
        return numpy.asarray(value)
    except Exception as error:
        raise InvalidArgument(f'{what}: numpy makes no array of it: {error}') from error


def by_name(inputs: Any, expected: Sequence[TensorMetadata]) -> dict[str, NDArray[Any]]:
    """The arrays by the model's names of its inputs, in the model's order."""
    names = [tensor.name for tensor in expected]
    listed = ', '.join(f"'{name}'" for name in names)
    if not isinstance(inputs, Mapping):
        if len(names) != 1:
            raise InvalidArgument(f'the model has {len(names)} inputs: give them by name: {listed}')
        inputs = {names[0]: inputs}
    for name in inputs:
        if name not in names:
            raise InvalidArgument(f'input {name!r}: unknown; the model has {listed}')
    for name in names:
        if name not in inputs:
            raise InvalidArgument(f"input '{name}' is missing")
    return {name: array_of(f"input '{name}'", inputs[name]) for name in names}


def check_size(arrays: Iterable[NDArray[Any]]) -> None:
    """Bounds the bytes of all arrays of one message."""
    size = sum(array.nbytes for array in arrays)
    if size > _MOST_BYTES:
        raise ResourceExhausted(f'the arrays have {size} bytes; a message has less than 2^31: '
                                'send fewer rows at a time (infer: batch)')


def contents_of(array: NDArray[Any], datatype: str) -> NDArray[Any]:
    """An array whose bytes are those of the wire: row-major, little-endian, without padding."""
    if datatype == 'BF16':
        return numpy.ascontiguousarray(bfloat16.bits(array))
    return numpy.ascontiguousarray(array, array.dtype.newbyteorder('<'))


def from_bytes(content: bytes, datatype: str, shape: Sequence[int], name: str) -> NDArray[Any]:
    """An array that may be written to."""
    if datatype != 'BF16' and datatype not in DTYPES:
        raise Error(f"output '{name}': numpy has no type for {datatype}")
    dtype = numpy.dtype(DTYPES['UINT16' if datatype == 'BF16' else datatype])
    if len(content) != int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize:
        raise Error(f"output '{name}': {len(content)} bytes are not {text_of(datatype, shape)}")
    array = numpy.frombuffer(bytearray(content), dtype).reshape(shape)
    return array.view(bfloat16.dtype()) if datatype == 'BF16' else array
