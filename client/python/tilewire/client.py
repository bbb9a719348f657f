# SPDX-License-Identifier: Apache-2.0
"""The client whose calls block."""
from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc

from tilewire.connection import SIDE_BY_SIDE, Connected, Remaining, presented
from tilewire.operations import Call, Operation, Operations, Progress

P = ParamSpec('P')
T = TypeVar('T')


def _blocking(operation: Callable[Concatenate[Operations, P], Operation[T]]
              ) -> Callable[Concatenate[Client, P], T]:
    """The operation as a method of Client that returns its result."""

    def method(client: Client, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._run(operation(client._operations, *args, **kwargs), client._time_of(kwargs))

    return presented(method, operation)


class Client(Connected):
    """A client whose methods block until the answer is there. It is thread-safe.

        with tilewire.Client('127.0.0.1:8001') as client:
            result = client.infer('resnet18', x, layout='nhwc')
    """

    def __init__(self, address: str | Sequence[str], *, timeout: float | None = 60,
                 attempts: int = 4, credentials: grpc.ChannelCredentials | None = None,
                 options: Sequence[tuple[str, Any]] = ()):
        super().__init__(address, timeout, attempts, credentials, options)
        self._channel, self._methods = self._connect(grpc)

    def close(self) -> None:
        """Closes the connections; calls that are on their way are cancelled."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, operation: Operation[T], remaining: Remaining) -> T:
        progress = Progress(operation)
        while not progress.done:
            try:
                progress.answered(self._responses(progress.calls, remaining))
            except grpc.RpcError as error:
                progress.failed(error)
        return progress.result

    def _responses(self, calls: Iterable[Call], remaining: Remaining) -> list[Any]:
        if isinstance(calls, list) and len(calls) == 1:
            call = calls[0]
            return [self._methods[call.method](call.request, timeout=remaining.seconds())]
        waiting: collections.deque[Any] = collections.deque()
        responses = []
        try:
            for call in calls:
                if len(waiting) == SIDE_BY_SIDE:
                    responses.append(waiting[0].result())
                    waiting.popleft()
                waiting.append(self._methods[call.method].future(
                    call.request, timeout=remaining.seconds()))
            while waiting:
                responses.append(waiting[0].result())
                waiting.popleft()
        finally:
            for rest in waiting:
                rest.cancel()
        return responses

    infer = _blocking(Operations.infer)
    metadata = _blocking(Operations.metadata)
    models = _blocking(Operations.models)
    ready = _blocking(Operations.ready)
    live = _blocking(Operations.live)
    server = _blocking(Operations.server)
    healthy = _blocking(Operations.healthy)
    explain = _blocking(Operations.explain)
    create_primitive = _blocking(Operations.create_primitive)
    run_primitive = _blocking(Operations.run_primitive)
