#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes networks that consist of one pattern that real models spend their time in.

python3 tests/bench/pattern_models.py DIR

  mobileface.onnx  a face embedding: depthwise bottlenecks, a PRelu with a slope per channel
  detector.onnx    a text detector: a backbone of MobileNet's kind, a pyramid, transposed convolutions
  dynamic.onnx     MobileNet v2 as ONNX Runtime's dynamic quantiser writes it
  columns.onnx     a text classifier: convolutions along a sequence that stands in the height
  narrow.onnx      softmax over two classes of many boxes, whose columns are then concatenated
  volume.onnx      a small U-Net over 256 x 256 x 256 voxels: gigabytes of values
  mask.onnx        a convolution of 64 channels of pixels to a single one
  attention.onnx   12 heads of 197 tokens whose products a quantiser has put between conversions
  multiplier.onnx  depthwise convolutions with 2, 4 and 8 outputs a channel, as Keras has them
  cardinality.onnx bottlenecks of 66 groups of 4 channels, and of 33 groups of 8, 3x3 and 1x1
  gates.onnx       two groups of 128 channels with an output each, 1x1 and 3x3
  faces.onnx       a face detector on 640 x 640 pixels: 1x1 and depthwise convolutions in turns
  boxes.onnx       a detector on 300 x 300 pixels: depthwise and 1x1 convolutions in turns

Weights are pseudo-random, scaled so that activations neither vanish nor grow.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and weights of a network under construction; methods return names of values."""

    def __init__(self, seed=1):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def constant(self, array):
        self.count += 1
        name = f'w{self.count}'
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, outputs=1, **attributes):
        self.count += 1
        names = [f'v{self.count}_{i}' for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def numbers(self, dims, products):
        scale = np.sqrt(2 / products)
        return self.random.normal(0, scale, dims).astype(np.float32)

    def conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1, rank=2):
        dims = [outputs, inputs // groups] + [kernel] * rank
        weights = self.constant(self.numbers(dims, np.prod(dims[1:])))
        bias = self.constant(self.random.normal(0, .1, outputs).astype(np.float32))
        return self.node('Conv', [x, weights, bias], group=groups, kernel_shape=[kernel] * rank,
                         strides=[stride] * rank, pads=[kernel // 2] * 2 * rank)

    def dynamic_conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1):
        """A convolution of integers, with the scale and zero point of this run's source."""
        dims = [outputs, inputs // groups, kernel, kernel]
        scale = 3 * np.sqrt(2 / np.prod(dims[1:])) / 127
        integers = self.random.normal(0, 127 / 3, dims).clip(-127, 127).round()
        quantized, source_scale, zero = self.node('DynamicQuantizeLinear', [x], outputs=3)
        weights = self.constant((integers + 128).astype(np.uint8))
        weights_zero = self.constant(np.uint8(128))
        sums = self.node('ConvInteger', [quantized, weights, zero, weights_zero], group=groups,
                         kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)
        real = self.node('Cast', [sums], to=TensorProto.FLOAT)
        scales = self.node('Mul', [source_scale, self.constant(np.float32(scale))])
        product = self.node('Mul', [real, scales])
        bias = self.random.normal(0, .1, [1, outputs, 1, 1]).astype(np.float32)
        return self.node('Add', [product, self.constant(bias)])

    def quantized(self, x, scale, zero):
        """The real numbers of u8, as quantisers write them."""
        grid = [self.constant(np.float32(scale)), self.constant(np.uint8(zero))]
        return self.node('DequantizeLinear', [self.node('QuantizeLinear', [x] + grid)] + grid)

    def deconv(self, x, inputs, outputs, kernel=2, stride=2, padding=0, rank=2):
        weights = self.constant(self.numbers([inputs, outputs] + [kernel] * rank, inputs))
        bias = self.constant(self.random.normal(0, .1, outputs).astype(np.float32))
        return self.node('ConvTranspose', [x, weights, bias], kernel_shape=[kernel] * rank,
                         strides=[stride] * rank, pads=[padding] * 2 * rank)

    def prelu(self, x, channels):
        slopes = self.random.uniform(.1, .4, [channels, 1, 1]).astype(np.float32)
        return self.node('PRelu', [x, self.constant(slopes)])

    def save(self, path, source, result):
        graph = helper.make_graph(
            self.nodes, path.stem,
            [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n'] + source)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)])
        model.ir_version = 7
        onnx.save(model, str(path))


def mobile_face(path):
    g = Graph()
    x = g.prelu(g.conv('x', 3, 64, kernel=3, stride=2), 64)
    x = g.prelu(g.conv(x, 64, 64, kernel=3, groups=64), 64)
    channels = 64
    for expansion, outputs, repeats, stride in ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1),
                                                (4, 128, 1, 2), (2, 128, 2, 1)):
        for i in range(repeats):
            step, middle = (stride if i == 0 else 1), channels * expansion
            y = g.prelu(g.conv(x, channels, middle), middle)
            y = g.prelu(g.conv(y, middle, middle, kernel=3, stride=step, groups=middle), middle)
            y = g.conv(y, middle, outputs)
            x = g.node('Add', [x, y]) if step == 1 and channels == outputs else y
            channels = outputs
    x = g.prelu(g.conv(x, 128, 512), 512)
    x = g.node('GlobalAveragePool', [x])
    g.save(path, [3, 112, 112], g.node('Flatten', [g.conv(x, 512, 128)]))


def detector(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    x = relu(g.conv('x', 3, 32, kernel=3, stride=2))
    levels, channels = [], 32
    for outputs in (64, 128, 256):
        x = relu(g.conv(x, channels, channels, kernel=3, stride=2, groups=channels))
        x = relu(g.conv(x, channels, outputs))
        x = relu(g.conv(x, outputs, outputs, kernel=3, groups=outputs))
        x = relu(g.conv(x, outputs, outputs))
        levels.append(g.conv(x, outputs, 96))
        channels = outputs
    top = levels[-1]
    for level in levels[-2::-1]:
        top = g.node('Add', [level, g.deconv(top, 96, 96)])
    y = relu(g.conv(top, 96, 24, kernel=3))
    y = relu(g.deconv(y, 24, 24))
    g.save(path, [3, 320, 320], g.node('Sigmoid', [g.deconv(y, 24, 1)]))


def columns(path):
    g = Graph()
    x, channels = 'x', 64
    for outputs in (128, 128, 256, 256):
        weights = g.constant(g.numbers([outputs, channels, 5, 1], 5 * channels))
        x = g.node('Conv', [x, weights], kernel_shape=[5, 1], pads=[2, 0, 2, 0])
        x, channels = g.node('Relu', [x]), outputs
    g.save(path, [64, 256, 1], g.node('GlobalAveragePool', [x]))


def narrow(path):
    g = Graph()
    scores = g.node('Softmax', ['x'], axis=2)
    parts = g.node('Split', [scores], outputs=2, axis=2)
    g.save(path, [17640, 2], g.node('Concat', [parts[1], parts[0]], axis=2))


def volume(path):
    g = Graph()
    conv = lambda *arguments, **options: g.node('Relu', [g.conv(*arguments, rank=3, **options)])
    deconv = lambda *arguments: g.node('Relu', [g.deconv(*arguments, rank=3)])
    whole = conv('x', 1, 8, kernel=3)
    x = g.node('MaxPool', [whole], kernel_shape=[2] * 3, strides=[2] * 3)
    x = conv(conv(x, 8, 16, kernel=3), 16, 32, kernel=3, stride=2)
    x = deconv(deconv(conv(x, 32, 32, kernel=3), 32, 16), 16, 8)
    x = g.conv(g.node('Add', [x, whole]), 8, 1, rank=3)
    g.save(path, [1, 256, 256, 256], g.node('Sigmoid', [x]))


def mask(path):
    g = Graph()
    x = g.node('Relu', [g.conv('x', 3, 64)])
    g.save(path, [3, 256, 256], g.conv(x, 64, 1, kernel=3))


def attention(path):
    g = Graph()
    heads, tokens, size = 12, 197, 64
    channels = heads * size
    x = g.quantized('x', .02, 121)
    number = lambda *numbers: g.constant(np.array(numbers, np.int64))
    parts = []
    for i, order in enumerate(([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])):
        part = g.node('Slice', [x, number(i * channels), number((i + 1) * channels), number(2)])
        split = g.node('Reshape', [part, number(0, tokens, heads, size)])
        parts.append(g.node('Transpose', [split], perm=order))
    scores = g.quantized(g.node('MatMul', parts[:2]), .05, 135)
    scaled = g.quantized(g.node('Mul', [scores, g.constant(np.float32(.125))]), .00625, 135)
    shares = g.quantized(g.node('Softmax', [scaled], axis=-1), 1 / 255, 0)
    context = g.quantized(g.node('MatMul', [shares, parts[2]]), .01, 120)
    back = g.node('Transpose', [context], perm=[0, 2, 1, 3])
    g.save(path, [tokens, 3 * channels], g.node('Reshape', [back, number(0, tokens, channels)]))


def multiplier(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    x, channels = relu(g.conv('x', 3, 33, kernel=3, stride=2)), 33
    for outputs, kernel in ((2, 3), (4, 3), (4, 1), (8, 3)):
        y = relu(g.conv(x, channels, outputs * channels, kernel=kernel, groups=channels))
        x = relu(g.conv(y, outputs * channels, channels))
    g.save(path, [3, 160, 160], g.conv(x, channels, 8))


def cardinality(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    x = relu(g.conv('x', 3, 64, kernel=3, stride=2))
    for groups, width, kernel in ((66, 4, 3), (66, 4, 1), (33, 8, 3), (33, 8, 1)):
        middle = groups * width
        y = relu(g.conv(x, 64, middle))
        y = relu(g.conv(y, middle, middle, kernel=kernel, groups=groups))
        x = g.node('Add', [x, g.conv(y, middle, 64)])
    g.save(path, [3, 80, 80], x)


def gates(path):
    g = Graph()
    x = g.node('Relu', [g.conv('x', 3, 256, kernel=3, stride=2)])
    parts = [g.conv(x, 256, 2, kernel=kernel, groups=2) for kernel in (1, 3)]
    g.save(path, [3, 80, 80], g.node('Sigmoid', [g.node('Concat', parts, axis=1)]))


def faces(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    pool = lambda x: g.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    unit = lambda x, inputs, outputs: relu(
        g.conv(g.conv(x, inputs, outputs), outputs, outputs, kernel=3, groups=outputs))
    x = pool(unit(relu(g.conv('x', 3, 16, kernel=3, stride=2)), 16, 16))
    x = pool(unit(unit(x, 16, 32), 32, 32))
    x = unit(unit(unit(x, 32, 64), 64, 64), 64, 64)
    for _ in range(2):
        x = unit(unit(pool(x), 64, 64), 64, 64)
    g.save(path, [3, 640, 640], g.conv(x, 64, 16))


def boxes(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    x, channels = relu(g.conv('x', 3, 32, kernel=3, stride=2)), 32
    for outputs, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 3:
        x = relu(g.conv(x, channels, channels, kernel=3, stride=stride, groups=channels))
        x, channels = relu(g.conv(x, channels, outputs)), outputs
    g.save(path, [3, 300, 300], g.conv(x, channels, 24))


def dynamic(path):
    g = Graph()
    clip = lambda x: g.node('Clip', [x, low, high])
    low, high = g.constant(np.float32(0)), g.constant(np.float32(6))
    x, channels = clip(g.dynamic_conv('x', 3, 32, kernel=3, stride=2)), 32
    for expansion, outputs, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                                (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                                (6, 320, 1, 1)):
        for i in range(repeats):
            step, middle = (stride if i == 0 else 1), channels * expansion
            y = x if expansion == 1 else clip(g.dynamic_conv(x, channels, middle))
            y = clip(g.dynamic_conv(y, middle, middle, kernel=3, stride=step, groups=middle))
            y = g.dynamic_conv(y, middle, outputs)
            x = g.node('Add', [x, y]) if step == 1 and channels == outputs else y
            channels = outputs
    x = clip(g.dynamic_conv(x, 320, 1280))
    x = g.node('Flatten', [g.node('GlobalAveragePool', [x])])
    weights = g.constant(g.numbers([1280, 1000], 1280))
    g.save(path, [3, 224, 224], g.node('MatMul', [x, weights]))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    mobile_face(folder / 'mobileface.onnx')
    detector(folder / 'detector.onnx')
    dynamic(folder / 'dynamic.onnx')
    columns(folder / 'columns.onnx')
    narrow(folder / 'narrow.onnx')
    volume(folder / 'volume.onnx')
    mask(folder / 'mask.onnx')
    attention(folder / 'attention.onnx')
    multiplier(folder / 'multiplier.onnx')
    cardinality(folder / 'cardinality.onnx')
    gates(folder / 'gates.onnx')
    faces(folder / 'faces.onnx')
    boxes(folder / 'boxes.onnx')


if __name__ == '__main__':
    main()
