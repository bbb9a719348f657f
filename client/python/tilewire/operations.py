# SPDX-License-Identifier: Apache-2.0
"""The operations of a client, apart from how calls are made.

An operation is a generator: it yields the calls that it needs, which may be made side by side, is
sent their responses in the same order, and returns its result. `tilewire.client` runs operations
with blocking calls, `tilewire.aio` with awaited ones. An error of a call is raised where it was
yielded.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy
from numpy.typing import NDArray

from tilewire import arguments, inference, primitives, wire
from tilewire import metadata as meta
from tilewire.errors import DeadlineExceeded, Error, InvalidArgument, NotFound, Unavailable
from tilewire.inference import Inputs, Result
from tilewire.tensors import Layout

T = TypeVar('T')


class Call(NamedTuple):
    """One call of a method of `wire.METHODS`."""

    method: str
    request: Any

    def written(self) -> bytes:
        """The request as it travels: made once, whatever becomes of the arrays that it names."""
        return bytes(self.request.SerializeToString())


Operation = Generator[Iterable[Call], Sequence[Any], T]


class Progress(Generic[T]):
    """An operation on its way: the `calls` that it waits for until it is `done`, then its `result`."""

    calls: Iterable[Call]
    result: T

    def __init__(self, operation: Operation[T]):
        self.done = False
        self._operation = operation
        self._resume(lambda: next(operation))

    def answered(self, responses: Sequence[Any]) -> None:
        self._resume(lambda: self._operation.send(responses))

    def failed(self, error: Error) -> None:
        self._resume(lambda: self._operation.throw(error))

    def _resume(self, step: Callable[[], Iterable[Call]]) -> None:
        try:
            self.calls = step()
        except StopIteration as end:
            self.done, self.result = True, end.value


def _one(method: str, **fields: Any) -> list[Call]:
    request = wire.METHODS[method].request()
    for name, value in fields.items():
        wire.put(request, name, value)
    return [Call(method, request)]


class Operations:
    """The operations of one client; its state is the metadata of models that were asked for. Every
    operation has a `timeout` in seconds, which the client that runs it heeds; without one, the
    client's own holds.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], meta.ModelMetadata] = {}

    def metadata(self, model: str, version: str = '', *,
                 refresh: bool = False,
                 timeout: float | None = None) -> Operation[meta.ModelMetadata]:
        """The model's inputs and outputs.

        It is asked for once and kept; `refresh=True` asks again. So does an `infer` whose arrays do
        not fit what is kept, since the model may have been replaced.

        Raises:
            NotFound: there is no such model or version.
            FailedPrecondition: the model failed to load.
        """
        key = (arguments.text('model', model), arguments.text('version', version))
        if refresh or key not in self._known:
            response, = yield _one('GRPCInferenceService.ModelMetadata', name=model, version=version)
            self._known[key] = meta.model_metadata(response)
        return self._known[key]

    def infer(self, model: str, inputs: Inputs, *, layout: Layout = 'nchw',
              output_layout: Layout | None = None, outputs: Sequence[str] | None = None,
              batch: int | None = None, version: str = '', id: str = '', priority: int = 0,
              timing: bool = False, parameters: Mapping[str, Any] | None = None,
              timeout: float | None = None) -> Operation[Result]:
        """Runs the model.

        Args:
            model: its name.
            inputs: an array if the model has one input, else arrays by the names of the inputs. The
                types are the model's: nothing is converted. For BF16 they are those that
                `tilewire.to_bfloat16` answers.
            layout: 'nchw' or 'nhwc': where the channels of inputs of rank 3 to 5 stand.
            output_layout: the same of outputs; as `layout` if it is not given.
            outputs: names of the outputs to answer; all if it is not given.
            batch: sends at most this many rows per request, or as many as the model takes if their
                number is fixed, several requests side by side, and puts their answers together;
                everything in one request if it is not given.
            version: of the model; the default one if it is empty.
            id: is echoed.
            priority: 1 is the highest; 0 leaves it to the server.
            timing: asks where the time went; see `Result.parameters`.
            parameters: others of the request, by name.
            timeout: seconds for all of it, retries included; the client's if it is not given.

        Raises:
            InvalidArgument: the arrays do not fit the model, or the server refused the request.
            NotFound: there is no such model or version.
            Unavailable: no server answers, or the attempts are used up.
            DeadlineExceeded: the timeout passed.
        """
        asked = inference.question(model, version, id, layout, output_layout, outputs, parameters)
        if arguments.whole('priority', priority, 0):
            asked.parameters['priority'] = int(priority)
        if arguments.truth('timing', timing):
            asked.parameters['timing'] = True
        kept = (model, version) in self._known
        described = yield from self.metadata(model, version)
        try:
            return (yield from self._ask(asked, described, inputs, batch))
        except (InvalidArgument, NotFound):
            if not kept:
                raise
            # The model may have been replaced since it was described.
            again = yield from self.metadata(model, version, refresh=True)
            if again == described:
                raise
            return (yield from self._ask(asked, again, inputs, batch))

    def _ask(self, asked: inference.Question, model: meta.ModelMetadata, inputs: Inputs,
             batch: int | None) -> Operation[Result]:
        arrays, taken = inference.arrays_of(asked, model, inputs, batch)
        if taken is None:
            response, = yield [Call(inference.METHOD, inference.request(asked, model, arrays))]
            return inference.result(response)
        responses = yield (Call(inference.METHOD, request)
                           for request in inference.requests(asked, model, arrays, taken))
        rows = len(next(iter(arrays.values())))
        return inference.together([inference.result(one) for one in responses], rows, taken)

    def models(self, *, timeout: float | None = None) -> Operation[list[meta.ModelEntry]]:
        """Every version of every model that is served, loads or failed to load.

        Raises:
            Unimplemented: the server has no index of models.
        """
        response, = yield _one('GRPCInferenceService.RepositoryIndex')
        return meta.model_entries(response)

    def ready(self, model: str = '', version: str = '', *,
              timeout: float | None = None) -> Operation[bool]:
        """Whether the model answers; of the server as a whole if no model is named."""
        if arguments.text('model', model):
            response, = yield _one('GRPCInferenceService.ModelReady', name=model, version=version)
        else:
            response, = yield _one('GRPCInferenceService.ServerReady')
        return bool(response.ready)

    def live(self, *, timeout: float | None = None) -> Operation[bool]:
        """Whether a server answers at all within the timeout."""
        try:
            response, = yield _one('GRPCInferenceService.ServerLive')
        except (DeadlineExceeded, Unavailable):
            return False
        return bool(response.live)

    def server(self, *, timeout: float | None = None) -> Operation[meta.ServerMetadata]:
        """The server's name, version and extensions."""
        response, = yield _one('GRPCInferenceService.ServerMetadata')
        return meta.server_metadata(response)

    def healthy(self, service: str = '', *, timeout: float | None = None) -> Operation[bool]:
        """Whether the server, or the model of this name, is healthy by gRPC's health service."""
        response, = yield _one('Health.Check', service=service)
        states = wire.enum('grpc.health.v1.HealthCheckResponse.ServingStatus')
        return bool(response.status == states['SERVING'])

    def explain(self, model: str, version: str = '', *, batch: int = 1, runs: int = 0,
                timeout: float | None = None) -> Operation[dict[str, Any]]:
        """The plan of a model as a dictionary in the shape of `protos/model_service.proto`'s
        ExplainResponse: the steps, what implements each, its layouts and bytes; with `runs`, times.
        """
        response, = yield _one('ModelService.Explain', model=model, version=version, batch=batch,
                               runs=runs)
        return primitives.as_dict(response)

    def create_primitive(self, primitive: Mapping[str, Any], *,
                         timeout: float | None = None) -> Operation[dict[str, Any]]:
        """Compiles a primitive; `primitive` has the shape of `protos/tilewire.proto`'s
        PrimitiveDesc, the answer that of CreateResponse: its implementation, its arguments.

        Raises:
            InvalidArgument: the descriptors do not fit each other.
            Unimplemented: nothing implements it; the text says why each implementation refused.
        """
        created, = yield [Call('PrimitiveService.Create', primitives.creation(primitive))]
        return primitives.as_dict(created)

    def run_primitive(self, primitive: Mapping[str, Any],
                      arguments: Mapping[str, NDArray[Any]], *,
                      timeout: float | None = None) -> Operation[dict[str, NDArray[Any]]]:
        """Runs a primitive once on plain arrays, whatever layouts it chose.

        Args:
            primitive: as for `create_primitive`.
            arguments: arrays by name: 'src', 'weights', 'bias', 'multiple_src[1]', ...

        Returns:
            The outputs by name ('dst'), as plain arrays.
        """
        creation = primitives.creation(primitive)
        created, = yield [Call('PrimitiveService.Create', creation)]
        request = primitives.execution(creation.primitive, created, arguments)
        response, = yield [Call('PrimitiveService.Execute', request)]
        return primitives.outputs(created, response)
