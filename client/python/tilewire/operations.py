# SPDX-License-Identifier: Apache-2.0
"""What a client can be asked, apart from how calls are made.

An operation is a generator: it yields the calls that it needs, which may be made side by side, is
sent their responses in the same order, and returns its result. `tilewire.client` runs operations
with blocking calls, `tilewire.aio` with awaited ones. An error of a call is raised where it was
yielded.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, Union

import grpc
import numpy

from tilewire import metadata as meta
from tilewire import primitives, tensors, wire
from tilewire.errors import Error, InvalidArgument, NotFound, Unavailable, from_rpc

T = TypeVar('T')
# An array for a model with one input, or arrays by the names of the inputs.
Inputs = Union[numpy.ndarray, Mapping[str, numpy.ndarray]]


class Call(NamedTuple):
    """One call of a method of `wire.METHODS`."""

    method: str
    request: Any


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

    def failed(self, error: grpc.RpcError) -> None:
        self._resume(lambda: self._operation.throw(from_rpc(error)))

    def _resume(self, step: Callable[[], Iterable[Call]]) -> None:
        try:
            self.calls = step()
        except StopIteration as end:
            self.done, self.result = True, end.value


def _one(method: str, **fields: Any) -> list[Call]:
    return [Call(method, wire.METHODS[method].request(**fields))]


class Result(dict[str, numpy.ndarray]):
    """The outputs of a model by their names: `result['logits']`. Each array may be written to.

    Attributes:
        model_version: the version that answered.
        id: the id of the request.
        layouts: of each output, the layout in which it was answered.
        parameters: of the response; with `timing=True` the server's `queue_us`, `compute_us`, of
            which `reorder_us` is a part, and `encode_us`, in microseconds.
    """

    def __init__(self, outputs: Mapping[str, numpy.ndarray], model_version: str, id: str,
                 layouts: dict[str, str], parameters: dict[str, Any]):
        super().__init__(outputs)
        self.model_version = model_version
        self.id = id
        self.layouts = layouts
        self.parameters = parameters


class _Question(NamedTuple):
    """What `infer` was asked, apart from the arrays."""

    model: str
    version: str
    id: str
    layout: str
    output_layout: str
    outputs: Sequence[str] | None
    parameters: dict[str, Any]


def _set(parameters: Any, values: Mapping[str, Any]) -> None:
    kinds = {bool: 'bool_param', int: 'int64_param', str: 'string_param', float: 'double_param'}
    for name, value in values.items():
        if type(value) not in kinds:
            raise InvalidArgument(f'parameter {name!r}: {value!r} is not a bool, int, str or float')
        setattr(parameters[name], kinds[type(value)], value)


def _call(question: _Question, model: meta.ModelMetadata,
          arrays: Mapping[str, numpy.ndarray]) -> Call:
    call, = _one('GRPCInferenceService.ModelInfer', model_name=question.model,
                 model_version=question.version, id=question.id)
    request = call.request
    _set(request.parameters, question.parameters)
    for name, array in arrays.items():
        tensor = request.inputs.add(name=name, datatype=tensors.datatype_of(array), shape=array.shape)
        if question.layout != 'nchw' and tensors.has_layout(array.shape):
            tensor.parameters['layout'].string_param = question.layout
        request.raw_input_contents.append(tensors.to_bytes(array))
    shapes = {output.name: output.shape for output in model.outputs}
    for name in question.outputs if question.outputs is not None else shapes:
        if name not in shapes:
            listed = ', '.join(f"'{known}'" for known in shapes)
            raise InvalidArgument(f"output '{name}': unknown; the model has {listed}")
        output = request.outputs.add(name=name)
        if question.output_layout != 'nchw' and tensors.has_layout(shapes[name]):
            output.parameters['layout'].string_param = question.output_layout
    return call


def _result(response: Any) -> Result:
    if len(response.outputs) != len(response.raw_output_contents):
        raise Error(f'the server answered {len(response.outputs)} outputs with '
                    f'{len(response.raw_output_contents)} raw contents')
    outputs, layouts = {}, {}
    for output, content in zip(response.outputs, response.raw_output_contents):
        outputs[output.name] = tensors.from_bytes(content, output.datatype, output.shape, output.name)
        named = 'layout' in output.parameters and output.parameters['layout'].string_param
        layouts[output.name] = named or 'nchw'
    parameters = {name: getattr(value, value.WhichOneof('parameter_choice'))
                  for name, value in response.parameters.items()
                  if value.WhichOneof('parameter_choice')}
    return Result(outputs, response.model_version, response.id, layouts, parameters)


def _together(results: Sequence[Result]) -> Result:
    first = results[0]
    outputs = {name: numpy.concatenate([result[name] for result in results]) for name in first}
    return Result(outputs, first.model_version, first.id, first.layouts, first.parameters)


class Operations:
    """Of one client; its state is the metadata of models that were asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], meta.ModelMetadata] = {}

    def metadata(self, model: str, version: str = '', *,
                 refresh: bool = False) -> Operation[meta.ModelMetadata]:
        """What the model takes and answers.

        It is asked for once and kept; `refresh=True` asks again. So does an `infer` whose arrays do
        not fit what is kept, since the model may have been replaced.

        Raises:
            NotFound: there is no such model or version.
            FailedPrecondition: the model failed to load.
        """
        key = (model, version)
        if refresh or key not in self._known:
            response, = yield _one('GRPCInferenceService.ModelMetadata', name=model, version=version)
            self._known[key] = meta.model_metadata(response)
        return self._known[key]

    def infer(self, model: str, inputs: Inputs, *, layout: str = 'nchw',
              output_layout: str | None = None, outputs: Sequence[str] | None = None,
              batch: int | None = None, version: str = '', id: str = '', priority: int = 0,
              timing: bool = False, parameters: Mapping[str, Any] | None = None,
              timeout: float | None = None) -> Operation[Result]:
        """Runs the model.

        Args:
            model: its name.
            inputs: an array if the model has one input, else arrays by the names of the inputs. The
                types are the model's: nothing is converted.
            layout: 'nchw' or 'nhwc': where the channels of inputs of rank 3 to 5 stand.
            output_layout: the same of outputs; as `layout` if it is not given.
            outputs: names of the outputs to answer; all if it is not given.
            batch: sends at most this many rows per request, several requests side by side, and puts
                their answers together; everything in one request if it is not given.
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
        del timeout  # The client that runs this operation heeds it.
        tensors.check_layout(layout)
        tensors.check_layout(output_layout or layout)
        sent = dict(parameters or {})
        if priority:
            sent['priority'] = priority
        if timing:
            sent['timing'] = True
        question = _Question(model, version, id, layout, output_layout or layout, outputs, sent)
        kept = (model, version) in self._known
        described = yield from self.metadata(model, version)
        try:
            return (yield from self._ask(question, described, inputs, batch))
        except (InvalidArgument, NotFound):
            if not kept:
                raise
            # The model may have been replaced since it was described.
            again = yield from self.metadata(model, version, refresh=True)
            if again == described:
                raise
            return (yield from self._ask(question, again, inputs, batch))

    def _ask(self, question: _Question, model: meta.ModelMetadata, inputs: Inputs,
             batch: int | None) -> Operation[Result]:
        arrays = tensors.by_name(inputs, model.inputs)
        for tensor in model.inputs:
            tensors.check_input(arrays[tensor.name], tensor, question.layout)
        rows = max((len(array) for array in arrays.values() if array.ndim), default=0)
        if batch is not None and batch < 1:
            raise InvalidArgument(f'batch={batch}: expected at least 1')
        if batch is None or rows <= batch:
            response, = yield [_call(question, model, arrays)]
            return _result(response)
        if any(not array.ndim or len(array) != rows for array in arrays.values()):
            raise InvalidArgument('batch: the inputs have different numbers of rows')
        # One request after the other is made while others are on their way.
        responses = yield (
            _call(question, model, {name: array[first:first + batch] for name, array in arrays.items()})
            for first in range(0, rows, batch))
        return _together([_result(response) for response in responses])

    def models(self) -> Operation[list[meta.ModelEntry]]:
        """Every version of every model that is served, loads or failed to load.

        Raises:
            Unimplemented: the server has no index of models.
        """
        response, = yield _one('GRPCInferenceService.RepositoryIndex')
        return meta.model_entries(response)

    def ready(self, model: str = '', version: str = '') -> Operation[bool]:
        """Whether the model answers; of the server as a whole if no model is named."""
        if model:
            response, = yield _one('GRPCInferenceService.ModelReady', name=model, version=version)
        else:
            response, = yield _one('GRPCInferenceService.ServerReady')
        return response.ready

    def live(self) -> Operation[bool]:
        """Whether a server answers at all."""
        try:
            response, = yield _one('GRPCInferenceService.ServerLive')
        except Unavailable:
            return False
        return response.live

    def server(self) -> Operation[meta.ServerMetadata]:
        """The server's name, version and extensions."""
        response, = yield _one('GRPCInferenceService.ServerMetadata')
        return meta.server_metadata(response)

    def healthy(self, service: str = '') -> Operation[bool]:
        """What gRPC's health service says of the server, or of the model of this name."""
        response, = yield _one('Health.Check', service=service)
        return response.status == wire.enum('grpc.health.v1.HealthCheckResponse.ServingStatus')['SERVING']

    def explain(self, model: str, version: str = '', *, batch: int = 1, runs: int = 0,
                timeout: float | None = None) -> Operation[dict[str, Any]]:
        """The plan of a model as a dictionary in the shape of `protos/model_service.proto`'s
        ExplainResponse: the steps, what implements each, its layouts and bytes; with `runs`, times.
        """
        del timeout
        response, = yield _one('ModelService.Explain', model=model, version=version, batch=batch,
                               runs=runs)
        return primitives.as_dict(response)

    def create_primitive(self, primitive: Mapping[str, Any]) -> Operation[dict[str, Any]]:
        """Compiles a primitive; `primitive` has the shape of `protos/tilewire.proto`'s
        PrimitiveDesc, the answer that of CreateResponse: its implementation, its arguments.

        Raises:
            InvalidArgument: the descriptors do not fit each other.
            Unimplemented: nothing implements it; the text says why each implementation refused.
        """
        response, = yield _one('PrimitiveService.Create', primitive=primitives.described(primitive))
        return primitives.as_dict(response)

    def run_primitive(self, primitive: Mapping[str, Any],
                      arguments: Mapping[str, numpy.ndarray], *,
                      timeout: float | None = None) -> Operation[dict[str, numpy.ndarray]]:
        """Runs a primitive once on plain arrays, whatever layouts it chose.

        Args:
            primitive: as for `create_primitive`.
            arguments: arrays by name: 'src', 'weights', 'bias', 'multiple_src[1]', ...

        Returns:
            The outputs by name ('dst'), as plain arrays.
        """
        del timeout
        description = primitives.described(primitive)
        created, = yield _one('PrimitiveService.Create', primitive=description)
        request = primitives.execution(description, created, arguments)
        response, = yield [Call('PrimitiveService.Execute', request)]
        return primitives.outputs(created, response)
