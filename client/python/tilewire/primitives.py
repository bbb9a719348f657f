# SPDX-License-Identifier: Apache-2.0
"""Single primitives: descriptions as dictionaries, arguments as plain arrays."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from google.protobuf import json_format
from numpy.typing import NDArray

from tilewire import arguments, bfloat16, tensors, wire
from tilewire.errors import Error, InvalidArgument

# The protocol's datatypes by the wire's numbers of those that primitives have.
_DATATYPES = {wire.enum('tilewire.v1.DataType')[name]: datatype for name, datatype in (
    ('DATA_TYPE_F16', 'FP16'), ('DATA_TYPE_BF16', 'BF16'), ('DATA_TYPE_F32', 'FP32'),
    ('DATA_TYPE_S32', 'INT32'), ('DATA_TYPE_S8', 'INT8'), ('DATA_TYPE_U8', 'UINT8'),
    ('DATA_TYPE_S64', 'INT64'))}
_TYPES = {datatype: number for number, datatype in _DATATYPES.items()}
_ARGUMENTS = wire.enum('tilewire.v1.Argument')
# The arguments that are written, for servers that do not say it.
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


def creation(primitive: Mapping[str, Any]) -> Any:
    """The wire's CreateRequest."""
    if not isinstance(primitive, Mapping):
        raise arguments.refused('primitive', primitive, "a dict in the shape of PrimitiveDesc")
    request = wire.METHODS['PrimitiveService.Create'].request()
    try:
        json_format.ParseDict(_plain(primitive), request.primitive)
    except (json_format.ParseError, AttributeError, TypeError, ValueError) as error:
        raise InvalidArgument(f'primitive: {error}') from error
    return request


def _numbers(created: Any) -> dict[str, int]:
    return {argument.name: argument.argument for argument in created.arguments}


def execution(description: Any, created: Any, passed: Mapping[str, NDArray[Any]]) -> Any:
    """The wire's ExecuteRequest, which asks for plain outputs."""
    if not isinstance(passed, Mapping):
        raise arguments.refused('arguments', passed, 'a dict of arrays by their names')
    request = wire.message('tilewire.v1.ExecuteRequest')(primitive=description)
    numbers = _numbers(created)
    arrays = {name: tensors.array_of(f'argument {name!r}', value) for name, value in passed.items()}
    tensors.check_size(arrays.values())
    for name, array in arrays.items():
        if name not in numbers:
            raise InvalidArgument(f"argument {name!r}: unknown; it has {', '.join(numbers)}")
        # An array of uint16 has the bits of BF16: no primitive has integers of 16.
        datatype = 'BF16' if bfloat16.holds(array) else tensors.datatype_of(array)
        if datatype not in _TYPES:
            raise InvalidArgument(f"argument '{name}': no primitive has the type {array.dtype}")
        request.inputs.add(argument=numbers[name],
                           content=tensors.contents_of(array, datatype).tobytes(),
                           desc={'dims': array.shape, 'type': _TYPES[datatype]})
    says_written = any(argument.written for argument in created.arguments)
    for argument in created.arguments:
        if argument.written if says_written else argument.argument in _OUTPUTS:
            request.outputs.add(argument=argument.argument, desc={
                'dims': list(argument.desc.dims), 'type': argument.desc.type})
    return request


def outputs(created: Any, response: Any) -> dict[str, NDArray[Any]]:
    names = {number: name for name, number in _numbers(created).items()}
    found = {}
    for tensor in response.outputs:
        name, datatype = names.get(tensor.argument), _DATATYPES.get(tensor.desc.type)
        if name is None or datatype is None:
            raise Error(f'the server answered argument {tensor.argument} of type {tensor.desc.type}')
        found[name] = tensors.from_bytes(tensor.content, datatype, tensor.desc.dims, name)
    return found
