# SPDX-License-Identifier: Apache-2.0
"""The requests that one inference makes, and how their answers become its result."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy
from numpy.typing import NDArray

from tilewire import arguments, tensors, wire
from tilewire.errors import Error, InvalidArgument
from tilewire.metadata import ModelMetadata, TensorMetadata

# An array for a model with one input, or arrays by the names of the inputs.
Inputs = Union[NDArray[Any], Mapping[str, NDArray[Any]]]
METHOD = 'GRPCInferenceService.ModelInfer'
_TIMES = ('queue_us', 'compute_us', 'reorder_us', 'encode_us')


class Result(dict[str, NDArray[Any]]):
    """The outputs of a model by their names: `result['logits']`. Each array may be written to.

    Attributes:
        model_version: the version that answered.
        id: the id of the request.
        layouts: of each output, the layout in which it was answered.
        parameters: of the response; with `timing=True` the server's `queue_us`, `compute_us`, of
            which `reorder_us` is a part, and `encode_us`, in microseconds. If `batch` made several
            requests, these times are their sums, and other parameters are those of the first.
        parts: the parameters of each of these responses, in the order of their rows; of the only
            one if there were no several.
    """

    def __init__(self, outputs: Mapping[str, NDArray[Any]], model_version: str, id: str,
                 layouts: dict[str, str], parameters: dict[str, Any]):
        super().__init__(outputs)
        self.model_version = model_version
        self.id = id
        self.layouts = layouts
        self.parameters = parameters
        self.parts = [parameters]


class Question(NamedTuple):
    """An inference, apart from the arrays."""

    model: str
    version: str
    id: str
    layout: str
    output_layout: str
    outputs: Sequence[str] | None
    parameters: dict[str, Any]


def question(model: str, version: str, id: str, layout: str, output_layout: str | None,
             outputs: Sequence[str] | None, parameters: Mapping[str, Any] | None) -> Question:
    """Checked as far as that can be done without the model."""
    for name, value in (('model', model), ('version', version), ('id', id)):
        arguments.text(name, value)
    tensors.check_layout(layout)
    tensors.check_layout(output_layout or layout, 'output_layout')
    if isinstance(outputs, str):
        raise arguments.refused('outputs', outputs, f'a list of names: [{outputs!r}]')
    if not (outputs is None or isinstance(outputs, Iterable)):
        raise arguments.refused('outputs', outputs, 'a list of names, or None')
    if not (parameters is None or isinstance(parameters, Mapping)):
        raise arguments.refused('parameters', parameters, 'a dict, or None')
    return Question(model, version, id, layout, output_layout or layout,
                    None if outputs is None else list(outputs), dict(parameters or {}))


def _set(parameters: Any, values: Mapping[str, Any]) -> None:
    kinds = {bool: 'bool_param', int: 'int64_param', str: 'string_param', float: 'double_param'}
    for name, value in values.items():
        if type(value) not in kinds:
            raise InvalidArgument(f'parameter {name!r}: {value!r} is not a bool, int, str or float')
        wire.put(parameters[arguments.text('parameters', name)], kinds[type(value)], value)


def request(asked: Question, model: ModelMetadata, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The wire's ModelInferRequest."""
    tensors.check_size(arrays.values())
    made = wire.METHODS[METHOD].request(model_name=asked.model, model_version=asked.version, id=asked.id)
    _set(made.parameters, asked.parameters)
    contents = []
    for wanted in model.inputs:
        array = arrays[wanted.name]
        tensor = made.inputs.add(name=wanted.name, datatype=wanted.datatype, shape=array.shape)
        if asked.layout != 'nchw' and tensors.has_layout(array.shape):
            tensor.parameters['layout'].string_param = asked.layout
        contents.append(tensors.contents_of(array, wanted.datatype))
    shapes = {output.name: output.shape for output in model.outputs}
    for name in asked.outputs if asked.outputs is not None else shapes:
        if name not in shapes:
            listed = ', '.join(f"'{known}'" for known in shapes)
            raise InvalidArgument(f'output {name!r}: unknown; the model has {listed}')
        output = made.outputs.add(name=name)
        if asked.output_layout != 'nchw' and tensors.has_layout(shapes[name]):
            output.parameters['layout'].string_param = asked.output_layout
    return wire.WithContents(made, 'raw_input_contents', contents)


def _rows_at_once(arrays: Mapping[str, NDArray[Any]], inputs: Sequence[TensorMetadata],
                  layout: str, batch: int) -> int | None:
    """The rows of each request: at most `batch`, and as many as the model takes if that number is
    fixed. None: one request has all of them.
    """
    rows = max((len(array) for array in arrays.values() if array.ndim), default=0)
    if rows <= batch and all(tensors.fits(arrays[one.name], one, layout) for one in inputs):
        return None
    fixed = {tensor.shape[0] for tensor in inputs if tensor.shape and tensor.shape[0] > 0}
    taken = min(fixed, default=batch)
    if rows <= taken:
        return None
    if len(fixed) > 1 or any(not array.ndim or len(array) != rows for array in arrays.values()):
        raise InvalidArgument(f'batch={batch}: the inputs have different numbers of rows')
    if batch < taken:
        raise InvalidArgument(f'batch={batch}: the model takes {taken} rows at a time, no fewer')
    if fixed and rows % taken:
        raise InvalidArgument(f'batch={batch}: the model takes {taken} rows at a time, and {rows} are '
                              f'no multiple of it: add {-rows % taken}, and drop what they answer')
    return taken


def arrays_of(asked: Question, model: ModelMetadata, inputs: Any,
              batch: int | None) -> tuple[dict[str, NDArray[Any]], int | None]:
    """The arrays by their names, which fit the model, and the rows of each request; None: there is
    only one request.
    """
    arrays = tensors.by_name(inputs, model.inputs)
    taken = None
    if batch is not None:
        taken = _rows_at_once(arrays, model.inputs, asked.layout, arguments.whole('batch', batch, 1))
    for tensor in model.inputs:
        tensors.check_input(arrays[tensor.name], tensor, asked.layout, taken)
    return arrays, taken


def requests(asked: Question, model: ModelMetadata, arrays: Mapping[str, NDArray[Any]],
             taken: int) -> Iterator[Any]:
    """One request after the other, so that one is made while others are on their way."""
    for first in range(0, len(next(iter(arrays.values()))), taken):
        yield request(asked, model, {name: array[first:first + taken] for name, array in arrays.items()})


def result(response: Any) -> Result:
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


def _joined(name: str, parts: Sequence[NDArray[Any]], rows: Sequence[int]) -> NDArray[Any]:
    """The answers to so many rows each, one after the other. Only an output that has as much for
    each row can be put together: where objects are detected, nothing would tell whose they are.
    """
    if any(part.shape[1:] != parts[0].shape[1:] or not part.ndim for part in parts):
        shapes = ', '.join(str(list(shape)) for shape in {part.shape: None for part in parts})
        raise InvalidArgument(f"output '{name}' has no rows that batch could put together: {shapes}")
    for part, asked in zip(parts, rows):
        if len(part) * rows[0] != len(parts[0]) * asked:
            raise InvalidArgument(
                f"output '{name}' has {len(parts[0])} rows for {rows[0]} of the input and {len(part)} "
                f'for {asked}: batch cannot put them together')
    return numpy.concatenate(parts)


def together(results: Sequence[Result], rows: int, taken: int) -> Result:
    """The result for all `rows`, of which each but the last part has `taken`."""
    first = results[0]
    if any(one.keys() != first.keys() for one in results):
        raise Error('the parts of the batch have different outputs: the model was replaced')
    counts = [min(taken, rows - begin) for begin in range(0, rows, taken)]
    outputs = {name: _joined(name, [one[name] for one in results], counts) for name in first}
    sums = {name: sum(one.parameters[name] for one in results) for name in _TIMES
            if all(isinstance(one.parameters.get(name), int) for one in results)}
    whole = Result(outputs, first.model_version, first.id, first.layouts, {**first.parameters, **sums})
    whole.parts = [one.parameters for one in results]
    return whole
