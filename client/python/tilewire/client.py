# SPDX-License-Identifier: Apache-2.0
"""The client whose calls block."""
from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc

from tilewire.attempts import Attempts, Remaining
from tilewire.connection import SIDE_BY_SIDE, Connected, presented
from tilewire.errors import Error
from tilewire.operations import Call, Operation, Operations, Progress

P = ParamSpec('P')
T = TypeVar('T')


def _blocking(operation: Callable[Concatenate[Operations, P], Operation[T]]
              ) -> Callable[Concatenate[Client, P], T]:
    """The operation as a method of Client that returns its result."""

    def method(client: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client._run(operation(client._operations, *args, **kwargs), client._time_of(kwargs))

    return presented(method, operation)


class Client(Connected):
    """A client whose methods block until the answer is there. It is thread-safe.

        with tilewire.Client('127.0.0.1:8001') as client:
            result = client.infer('resnet18', x, layout='nhwc')
    """

    def _started(self) -> None:
        self._channel, self._methods = self._connect(grpc)

    def close(self) -> None:
        """Closes the connections; calls that are on their way fail."""
        self._closed = True
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, operation: Operation[T], remaining: Remaining) -> T:
        self._refuse_if_closed()
        progress = Progress(operation)
        while not progress.done:
            try:
                responses = self._responses(progress.calls, remaining)
            except Error as error:
                progress.failed(error)
            else:
                progress.answered(responses)
        return progress.result

    def _responses(self, calls: Iterable[Call], remaining: Remaining) -> list[Any]:
        if isinstance(calls, list) and len(calls) == 1:
            call = calls[0]
            return [self._answer(self._methods[call.method], call.written(), Attempts(remaining))]
        waiting: collections.deque[tuple[Any, bytes, Attempts, Any]] = collections.deque()
        responses = []
        try:
            for call in calls:
                if len(waiting) == SIDE_BY_SIDE:
                    responses.append(self._answer(*waiting[0]))
                    waiting.popleft()
                method, request, attempts = self._methods[call.method], call.written(), Attempts(remaining)
                waiting.append((method, request, attempts, self._sent(method, request, attempts)))
            while waiting:
                responses.append(self._answer(*waiting[0]))
                waiting.popleft()
        finally:
            for *_, future in waiting:
                future.cancel()
        return responses

    def _sent(self, method: Any, request: bytes, attempts: Attempts) -> Any:
        """The future of the response."""
        try:
            return method.future(request, timeout=attempts.timeout())
        except ValueError:  # of gRPC's, if the channel is closed
            self._refuse_if_closed()
            raise

    def _answer(self, method: Any, request: bytes, attempts: Attempts, first: Any = None) -> Any:
        """The response to a request, of which the `first` attempt may be under way."""
        while True:
            try:
                if first is not None:
                    return first.result()
                return method(request, timeout=attempts.timeout())
            except grpc.RpcError as error:
                self._refuse_if_closed()
                failure = attempts.failed(error)
                if failure is not None:
                    raise failure from error
            except (ValueError, grpc.FutureCancelledError):
                self._refuse_if_closed()
                raise
            first = None

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
