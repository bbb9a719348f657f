# SPDX-License-Identifier: Apache-2.0
"""A server's description of itself and of its models."""
from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class TensorMetadata:
    """An input or output. `shape` is [N, C, spatial...]; -1 is chosen by each request.

    (-1,) may stand for any rank.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """A model; the last of its `versions` serves if a request names none."""

    name: str
    platform: str
    versions: tuple[str, ...]
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    properties: dict[str, str]

    @property
    def labels(self) -> list[str]:
        """The names of the classes; empty if the model has none."""
        return self.properties.get('labels', '').splitlines()


@dataclasses.dataclass(frozen=True)
class ModelEntry:
    """A version of a model in the server's index; `reason` says why it is not READY."""

    name: str
    version: str
    state: str
    reason: str


@dataclasses.dataclass(frozen=True)
class ServerMetadata:
    """A server, and what it does beyond the protocol."""

    name: str
    version: str
    extensions: tuple[str, ...]


def _tensors(wire: Any) -> tuple[TensorMetadata, ...]:
    return tuple(TensorMetadata(one.name, one.datatype, tuple(one.shape)) for one in wire)


def model_metadata(response: Any) -> ModelMetadata:
    return ModelMetadata(response.name, response.platform, tuple(response.versions),
                         _tensors(response.inputs), _tensors(response.outputs),
                         dict(response.properties))


def server_metadata(response: Any) -> ServerMetadata:
    return ServerMetadata(response.name, response.version, tuple(response.extensions))


def model_entries(response: Any) -> list[ModelEntry]:
    return [ModelEntry(one.name, one.version, one.state, one.reason) for one in response.models]
