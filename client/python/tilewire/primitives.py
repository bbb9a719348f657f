# SPDX-License-Identifier: Apache-2.0
"""Single primitives: descriptions as dictionaries, arguments as plain arrays."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from google.protobuf import json_format

from tilewire import wire
from tilewire.errors import InvalidArgument

_DTYPES = {'DATA_TYPE_F16': '<f2', 'DATA_TYPE_F32': '<f4', 'DATA_TYPE_S32': '<i4',
           'DATA_TYPE_S8': 'i1', 'DATA_TYPE_U8': 'u1'}
_TYPES = {numpy.dtype(dtype): wire.enum('tilewire.v1.DataType')[name]
          for name, dtype in _DTYPES.items()}
_DTYPE_OF = {number: dtype for dtype, number in _TYPES.items()}
_ARGUMENTS = wire.enum('tilewire.v1.Argument')
_OUTPUTS = (_ARGUMENTS['ARGUMENT_DST'], _ARGUMENTS['ARGUMENT_DIFF_SRC'])


def as_dict(message: Any) -> dict[str, Any]:
    """The message's fields by the names that they have in `protos/`: enums by name, zeros and empty
    lists included, messages that are absent left out.
    """
    fields = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.label == field.LABEL_REPEATED:
            fields[field.name] = [_item(field, item) for item in value]
        elif not field.containing_oneof and not field.message_type or message.HasField(field.name):
            fields[field.name] = _item(field, value)
    return fields


def _item(field: Any, value: Any) -> Any:
    if field.message_type:
        return as_dict(value)
    return field.enum_type.values_by_number[value].name if field.enum_type else value


def _plain(value: Any) -> Any:
    """The value with lists in the place of tuples and arrays, as the parser wants it."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, (numpy.ndarray, numpy.generic)) else value


def described(primitive: Mapping[str, Any]) -> Any:
    """The wire's PrimitiveDesc."""
    try:
        return json_format.ParseDict(_plain(primitive), wire.message('tilewire.v1.PrimitiveDesc')())
    except json_format.ParseError as error:
        raise InvalidArgument(f'primitive: {error}') from error


def _numbers(created: Any) -> dict[str, int]:
    return {argument.name: argument.argument for argument in created.arguments}


def execution(description: Any, created: Any, arguments: Mapping[str, numpy.ndarray]) -> Any:
    """The wire's ExecuteRequest, which asks for plain outputs."""
    request = wire.message('tilewire.v1.ExecuteRequest')(primitive=description)
    numbers = _numbers(created)
    for name, array in arguments.items():
        array = numpy.asarray(array)
        dtype = array.dtype.newbyteorder('<')
        if name not in numbers:
            raise InvalidArgument(f"argument '{name}': unknown; it has {', '.join(numbers)}")
        if dtype not in _TYPES:
            raise InvalidArgument(f"argument '{name}': no primitive has the type {array.dtype}")
        request.inputs.add(argument=numbers[name], content=array.astype(dtype, copy=False).tobytes(),
                           desc={'dims': array.shape, 'type': _TYPES[dtype]})
    for argument in created.arguments:
        if argument.argument in _OUTPUTS:
            request.outputs.add(argument=argument.argument, desc={
                'dims': list(argument.desc.dims), 'type': argument.desc.type})
    return request


def outputs(created: Any, response: Any) -> dict[str, numpy.ndarray]:
    names = {number: name for name, number in _numbers(created).items()}
    found = {}
    for tensor in response.outputs:
        if tensor.desc.type not in _DTYPE_OF:
            raise InvalidArgument(f"output '{names[tensor.argument]}': numpy has no type for BF16")
        found[names[tensor.argument]] = numpy.frombuffer(
            bytearray(tensor.content), _DTYPE_OF[tensor.desc.type]).reshape(tensor.desc.dims)
    return found
