# SPDX-License-Identifier: Apache-2.0
"""The messages and methods of the wire, made from `protos.binpb`, the compiled files of `protos/`.

They live in a descriptor pool of their own. Another package of the process may therefore register
its own files of the same protocol in the default pool, as `tritonclient` does, before or after this
one, in the same version or in another.
"""
from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


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


def message(name: str) -> Any:
    """The class of the message with this full name, such as `inference.ModelInferRequest`."""
    descriptor = _POOL.FindMessageTypeByName(name)
    return message_factory.GetMessageClass(descriptor) if _NEW else _FACTORY.GetPrototype(descriptor)


def enum(name: str) -> dict[str, int]:
    """The values of the enum with this full name, such as `tilewire.v1.Argument`, by their names."""
    return {value.name: value.number for value in _POOL.FindEnumTypeByName(name).values}


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
