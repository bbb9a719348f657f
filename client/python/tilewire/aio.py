# SPDX-License-Identifier: Apache-2.0
"""The client whose calls are awaited."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import grpc
import grpc.aio

from tilewire.connection import SIDE_BY_SIDE, Connected, Remaining, presented
from tilewire.operations import Call, Operation, Operations, Progress

P = ParamSpec('P')
T = TypeVar('T')


def _awaited(operation: Callable[Concatenate[Operations, P], Operation[T]]
             ) -> Callable[Concatenate[Client, P], Awaitable[T]]:
    """The operation as a coroutine method of Client."""

    async def method(client: Client, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = operation(client._operations, *args, **kwargs)
        return await client._run(asked, client._time_of(kwargs))

    return presented(method, operation)


class Client(Connected):
    """A client for asyncio, with the methods of `tilewire.Client` as coroutines.

        async with tilewire.aio.Client('127.0.0.1:8001') as client:
            result = await client.infer('resnet18', x, layout='nhwc')

    It belongs to the event loop of its first call. A task that is cancelled cancels its calls.
    """

    def __init__(self, address: str | Sequence[str], *, timeout: float | None = 60,
                 attempts: int = 4, credentials: grpc.ChannelCredentials | None = None,
                 options: Sequence[tuple[str, Any]] = ()):
        super().__init__(address, timeout, attempts, credentials, options)
        self._channel: Any = None
        self._methods: dict[str, Any] = {}

    async def close(self) -> None:
        """Closes the connections; calls that are on their way are cancelled."""
        if self._channel is not None:
            await self._channel.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, operation: Operation[T], remaining: Remaining) -> T:
        if self._channel is None:  # gRPC asks for the loop that runs now
            self._channel, self._methods = self._connect(grpc.aio)
        progress = Progress(operation)
        while not progress.done:
            try:
                progress.answered(await self._responses(progress.calls, remaining))
            except grpc.RpcError as error:
                progress.failed(error)
        return progress.result

    async def _responses(self, calls: Iterable[Call], remaining: Remaining) -> list[Any]:
        slots = asyncio.Semaphore(SIDE_BY_SIDE)

        async def respond(call: Call) -> Any:
            try:
                return await self._methods[call.method](call.request, timeout=remaining.seconds())
            finally:
                slots.release()

        tasks = []
        try:
            for call in calls:
                await slots.acquire()
                tasks.append(asyncio.ensure_future(respond(call)))
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

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
