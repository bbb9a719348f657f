# SPDX-License-Identifier: Apache-2.0
"""The messages and methods of the wire, made from `protos.binpb`, the compiled files of `protos/`.

They live in a descriptor pool of their own. Another package of the process may therefore register
its own files of the same protocol in the default pool, as `tritonclient` does, before or after this
one, in the same version or in another.
"""
from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tilewire import arguments


def _load() -> tuple[descriptor_pool.DescriptorPool, list[descriptor_pb2.FileDescriptorProto]]:
    compiled = pathlib.Path(__file__).with_name('protos.binpb').read_bytes()
    files = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool, list(files)


_POOL, _FILES = _load()
_NEW = hasattr(message_factory, 'GetMessageClass')  # since protobuf 4.22
_FACTORY: Any = None if _NEW else message_factory.MessageFactory(_POOL)

# The contents of fields, by protobuf's numbers of their types.
_SCALARS = {1: 'a number', 3: 'a whole number', 4: 'a whole number from 0', 5: 'a whole number',
            8: 'True or False', 9: 'a str'}


def message(name: str) -> Any:
    """The class of the message with this full name, such as `inference.ModelInferRequest`."""
    descriptor = _POOL.FindMessageTypeByName(name)
    return message_factory.GetMessageClass(descriptor) if _NEW else _FACTORY.GetPrototype(descriptor)


def put(target: Any, name: str, value: Any) -> None:
    """Sets a field of one of these types; InvalidArgument if it holds no such value."""
    try:
        setattr(target, name, value)
    except (TypeError, ValueError) as error:
        wanted = _SCALARS[target.DESCRIPTOR.fields_by_name[name].type]
        raise arguments.refused(name, value, wanted) from error


def enum(name: str) -> dict[str, int]:
    """The values of the enum with this full name, such as `tilewire.v1.Argument`, by their names."""
    return {value.name: value.number for value in _POOL.FindEnumTypeByName(name).values}


def _varint(number: int) -> bytes:
    """As protobuf writes it: 7 bits a byte, the lowest first, all bytes but the last marked."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


class WithContents:
    """A message and the elements of one of its fields of bytes, which are copied once, when it is
    written: a message that held them would have been the third copy.
    """

    def __init__(self, message: Any, field: str, contents: Sequence[Any]):
        self._message = message
        self._tag = _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)
        self._contents = contents  # what has its bytes in one piece

    def SerializeToString(self) -> bytes:
        parts: list[Any] = [self._message.SerializeToString()]
        for content in self._contents:
            parts += [self._tag, _varint(memoryview(content).nbytes), content]
        return b''.join(parts)


class Method(NamedTuple):
    """A method of a service that takes one message and answers one."""

    path: str  # "/inference.GRPCInferenceService/ModelInfer"
    request: Any  # the classes of the messages
    response: Any


def _methods() -> dict[str, Method]:
    found = {}
    for file in _FILES:
        for service in file.service:
            for method in service.method:
                if method.client_streaming or method.server_streaming:
                    continue
                found[f'{service.name}.{method.name}'] = Method(
                    f'/{file.package}.{service.name}/{method.name}',
                    message(method.input_type[1:]), message(method.output_type[1:]))
    return found


# By service and name: "GRPCInferenceService.ModelInfer", "PrimitiveService.Create", "Health.Check".
METHODS = _methods()
