# SPDX-License-Identifier: Apache-2.0
"""A server within the process that answers as a test tells it to; run as a program, one that prints
its address and serves until its standard input ends.

It has one model `echo` (x [N,3,4,5] -> y, the same), until a test changes `double.model`.
"""
import sys
import threading
from concurrent import futures

import grpc
from tilewire import wire

_SERVICE = 'GRPCInferenceService'


def describe(shape, datatype='FP32'):
    """Metadata of `echo` with an input of this shape."""
    metadata = wire.METHODS[f'{_SERVICE}.ModelMetadata'].response(name='echo', versions=['1'])
    metadata.inputs.add(name='x', datatype=datatype, shape=shape)
    metadata.outputs.add(name='y', datatype=datatype, shape=shape)
    return metadata


class Double:
    """`refusals` holds (code, pushback in ms or None) for the next requests; `seen` holds requests.
    While `going` is not set, requests get no answer, nor do the next `ignored` ones until the end;
    `serving` is what its health service says.
    """

    def __init__(self, credentials=None):
        self.model = describe([-1, 3, 4, 5])
        self.refusals = []
        self.seen = []
        self.metadata_calls = 0
        self.edit = None  # of answers
        self.going = threading.Event()
        self.going.set()
        self.ignored, self._ended = 0, threading.Event()
        self._health, self._serving = threading.Condition(), True
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[
            ('grpc.max_receive_message_length', -1), ('grpc.so_reuseport', 0)])
        answers = {'ModelMetadata': self._metadata, 'ModelInfer': self._infer}
        handlers = {}
        for name, answer in answers.items():
            method = wire.METHODS[f'{_SERVICE}.{name}']
            handlers[name] = grpc.unary_unary_rpc_method_handler(
                answer, method.request.FromString, method.response.SerializeToString)
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(f'inference.{_SERVICE}', handlers)])
        watch = grpc.unary_stream_rpc_method_handler(
            self._watch, wire.message('grpc.health.v1.HealthCheckRequest').FromString,
            wire.message('grpc.health.v1.HealthCheckResponse').SerializeToString)
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler('grpc.health.v1.Health', {'Watch': watch})])
        port = (self._server.add_secure_port('127.0.0.1:0', credentials) if credentials else
                self._server.add_insecure_port('127.0.0.1:0'))
        self.address = f'127.0.0.1:{port}'
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.going.set()
        self._ended.set()
        self.serving = None
        self._server.stop(None).wait()

    @property
    def serving(self):
        return self._serving

    @serving.setter
    def serving(self, serving):
        with self._health:
            self._serving = serving
            self._health.notify_all()

    def _watch(self, request, context):
        """Each change of `serving`, until that is None."""
        response = wire.message('grpc.health.v1.HealthCheckResponse')
        told = self.serving
        while told is not None:
            yield response(status='SERVING' if told else 'NOT_SERVING')
            with self._health:
                self._health.wait_for(lambda: self._serving is not told)
                told = self._serving

    def _metadata(self, request, context):
        self.metadata_calls += 1
        if request.name != self.model.name:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no model '{request.name}'")
        return self.model

    def _infer(self, request, context):
        self.seen.append(request)
        self.going.wait()
        if self.ignored:
            self.ignored -= 1
            self._ended.wait()
        if self.refusals:
            code, pushback_ms = self.refusals.pop(0)
            if pushback_ms is not None:
                context.set_trailing_metadata([('grpc-retry-pushback-ms', str(pushback_ms))])
            context.abort(code, 'refused by the double')
        wanted, got = list(self.model.inputs[0].shape), list(request.inputs[0].shape)
        if wanted != [-1] and (got[1:] != wanted[1:] or wanted[0] not in (-1, got[0])):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "input 'x': another shape")
        response = wire.METHODS[f'{_SERVICE}.ModelInfer'].response(id=request.id, model_version='1')
        response.outputs.add(name='y', datatype=request.inputs[0].datatype,
                             shape=request.inputs[0].shape)
        response.raw_output_contents.append(request.raw_input_contents[0])
        if self.edit:
            self.edit(response)
        return response


if __name__ == '__main__':
    with Double() as running:
        print(running.address, flush=True)
        sys.stdin.read()
