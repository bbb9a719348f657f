# SPDX-License-Identifier: Apache-2.0
"""The client whose calls are awaited."""
from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc
import grpc.aio

from tilewire.attempts import Attempts, Remaining
from tilewire.connection import SIDE_BY_SIDE, Connected, presented
from tilewire.errors import Error, FailedPrecondition
from tilewire.operations import Call, Operation, Operations, Progress

P = ParamSpec('P')
T = TypeVar('T')


def _awaited(operation: Callable[Concatenate[Operations, P], Operation[T]]
             ) -> Callable[Concatenate[Client, P], Coroutine[Any, Any, T]]:
    """The operation as a coroutine method of Client."""

    async def method(client: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = operation(client._operations, *args, **kwargs)
        return await client._run(asked, client._time_of(kwargs))

    return presented(method, operation)


def _is_being_cancelled() -> bool:
    """Whether someone has cancelled the task that runs; False if this Python cannot tell."""
    task = asyncio.current_task()
    return task is not None and hasattr(task, 'cancelling') and task.cancelling() > 0


class Client(Connected):
    """A client for asyncio, with the methods of `tilewire.Client` as coroutines.

        async with tilewire.aio.Client('127.0.0.1:8001') as client:
            result = await client.infer('resnet18', x, layout='nhwc')

    It belongs to the event loop of its first call until that loop is closed. A task that is cancelled
    cancels its calls.
    """

    _channel: Any = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        """Closes the connections; calls that are on their way fail."""
        self._closed = True
        if self._loop is asyncio.get_running_loop():
            await self._channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open(self) -> None:
        """Connections of the loop that runs now: gRPC's are of one loop."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise FailedPrecondition('this client belongs to another event loop, which has not ended: '
                                     'make a client for each loop')
        self._loop = loop
        self._channel, self._methods = self._connect(grpc.aio)

    async def _run(self, operation: Operation[T], remaining: Remaining) -> T:
        self._refuse_if_closed()
        self._open()
        progress = Progress(operation)
        while not progress.done:
            try:
                responses = await self._responses(progress.calls, remaining)
            except Error as error:
                progress.failed(error)
            else:
                progress.answered(responses)
        return progress.result

    async def _responses(self, calls: Iterable[Call], remaining: Remaining) -> list[Any]:
        slots = asyncio.Semaphore(SIDE_BY_SIDE)

        async def respond(call: Call) -> Any:
            try:
                return await self._answer(call, Attempts(remaining))
            finally:
                slots.release()

        tasks = []
        try:
            for call in calls:
                await slots.acquire()
                tasks.append(asyncio.ensure_future(respond(call)))
            responses: list[Any] = await asyncio.gather(*tasks)
            return responses
        finally:
            for task in tasks:
                task.cancel()

    async def _answer(self, call: Call, attempts: Attempts) -> Any:
        method, request = self._methods[call.method], call.written()
        while True:
            try:
                return await method(request, timeout=attempts.timeout())
            except grpc.RpcError as error:
                self._refuse_if_closed()
                failure = attempts.failed(error)
                if failure is not None:
                    raise failure from error
            except grpc.aio.UsageError:
                self._refuse_if_closed()
                raise
            except asyncio.CancelledError:
                if not _is_being_cancelled():  # gRPC cancels calls of a channel that is closed
                    self._refuse_if_closed()
                raise

    infer = _awaited(Operations.infer)
    metadata = _awaited(Operations.metadata)
    models = _awaited(Operations.models)
    ready = _awaited(Operations.ready)
    live = _awaited(Operations.live)
    server = _awaited(Operations.server)
    healthy = _awaited(Operations.healthy)
    explain = _awaited(Operations.explain)
    create_primitive = _awaited(Operations.create_primitive)
    run_primitive = _awaited(Operations.run_primitive)
