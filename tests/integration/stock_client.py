# SPDX-License-Identifier: Apache-2.0
"""Asks a server for the held-out digits with raw and typed contents, in both layouts.

usage: stock_client.py HOST:PORT DIRECTORY   (of the model digits)

The logits must be torch's (logits.f32) to a relative L2 of 1e-4 and classify as well; what comes
back must not depend on how it was sent, bit for bit.
"""
import pathlib
import sys

import grpc
import numpy
from protos import open_inference_pb2 as pb
from protos import open_inference_pb2_grpc as rpc

COUNT = 60


def read(directory):
    held_out = pathlib.Path(directory) / 'heldout'
    labels = numpy.fromfile(held_out / 'labels.u8', numpy.uint8)
    images = numpy.fromfile(held_out / 'images.u8', numpy.uint8).reshape(len(labels), 3, 24, 20)
    logits = numpy.fromfile(held_out / 'logits.f32', '<f4').reshape(len(labels), 10)
    return (images[:COUNT] / numpy.float32(255)).astype('<f4'), labels[:COUNT], logits[:COUNT]


def make_request(images, raw, layout):
    """One request for a batch; layout None sends no parameter at all."""
    request = pb.ModelInferRequest(model_name='digits', id=f'{raw} {layout}')
    sent = images.transpose(0, 2, 3, 1) if layout == 'nhwc' else images
    tensor = request.inputs.add(name='image', datatype='FP32', shape=sent.shape)
    if raw:
        request.raw_input_contents.append(sent.tobytes())
    else:
        tensor.contents.fp32_contents.extend(sent.ravel().tolist())
    request.outputs.add(name='logits')
    features = request.outputs.add(name='features')
    if layout:
        tensor.parameters['layout'].string_param = layout
        features.parameters['layout'].string_param = layout
    return request


def ask(stub, images, raw, layout):
    """(logits, features in nchw) as arrays."""
    request = make_request(images, raw, layout)
    response = stub.ModelInfer(request, timeout=60)
    assert response.id == request.id and response.model_name == 'digits', response.id
    assert [output.name for output in response.outputs] == ['logits', 'features']
    arrays = [numpy.frombuffer(content, '<f4').reshape(list(output.shape))
              for output, content in zip(response.outputs, response.raw_output_contents)]
    if layout == 'nhwc':
        assert arrays[1].shape == (len(images), 6, 5, 40), arrays[1].shape
        arrays[1] = arrays[1].transpose(0, 3, 1, 2)
    assert arrays[1].shape == (len(images), 40, 6, 5), arrays[1].shape
    return arrays


def check_answers(stub, directory):
    images, labels, expected = read(directory)
    first = None
    for raw in (True, False):
        for layout in (None, 'nchw', 'nhwc'):
            logits, features = ask(stub, images, raw, layout)
            error = numpy.linalg.norm(logits - expected) / numpy.linalg.norm(expected)
            assert error < 1e-4, (raw, layout, error)
            assert (logits.argmax(1) == expected.argmax(1)).all(), (raw, layout)
            assert (logits.argmax(1) == labels).mean() > 0.9, (raw, layout)
            first = first or (logits.tobytes(), features.tobytes())
            assert first == (logits.tobytes(), features.tobytes()), (raw, layout, 'other bits')
            print(f'raw={raw} layout={layout}: {COUNT} answers, relative L2 {error:.1e}')
    one = ask(stub, images[:1], True, None)
    assert one[0].tobytes() == first[0][:40], 'a batch of one gives other bits'


def check_refusals(stub, directory):
    """The codes that a stock client acts on."""
    images, _, _ = read(directory)
    good = make_request(images[:1], True, None)
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    cases = (
        (grpc.StatusCode.NOT_FOUND, lambda r: setattr(r, 'model_name', 'nope')),
        (invalid, lambda r: setattr(r.inputs[0], 'name', 'nope')),
        (invalid, lambda r: setattr(r.inputs[0], 'datatype', 'INT8')),
        (invalid, lambda r: r.raw_input_contents.append(b'more')),
        (invalid, lambda r: r.inputs[0].contents.fp32_contents.append(1)),
    )
    for code, edit in cases:
        request = pb.ModelInferRequest()
        request.CopyFrom(good)
        edit(request)
        try:
            stub.ModelInfer(request, timeout=60)
            raise AssertionError(f'{code} expected')
        except grpc.RpcError as error:
            assert error.code() == code and error.details(), error
        stub.ModelInfer(good, timeout=60)


def main():
    stub = rpc.GRPCInferenceServiceStub(grpc.insecure_channel(sys.argv[1]))
    assert stub.ServerLive(pb.ServerLiveRequest(), timeout=60).live
    assert stub.ServerReady(pb.ServerReadyRequest(), timeout=60).ready
    assert stub.ModelReady(pb.ModelReadyRequest(name='digits'), timeout=60).ready
    metadata = stub.ModelMetadata(pb.ModelMetadataRequest(name='digits'), timeout=60)
    assert list(metadata.inputs[0].shape) == [-1, 3, 24, 20], metadata
    check_answers(stub, sys.argv[2])
    check_refusals(stub, sys.argv[2])


if __name__ == '__main__':
    main()
