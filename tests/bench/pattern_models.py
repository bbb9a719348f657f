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
  integers_*.onnx  comparisons, choices and arithmetic of one type of integers each
  casts.onnx       conversions between most types
  indices.onnx     the best of many scores, as places in rows and columns, and what lies there
  shifted.onnx     convolutions by u8 weights around 117, as a dynamic quantiser writes them
  shifted_rows.onnx products of matrices like that
  pairs.onnx       products whose both sides are quantised in the run
  turned.onnx      84 rows of 8,400 columns become columns
  head.onnx        a detector's head: boxes as distributions, scores, everything turned at the end
  anchors.onnx     an older one: maps turned first, boxes by anchors, parts of 2, 2 and 81
  vectors_*.onnx   many small products: a row or a few times a matrix each
  kept*.onnx       NonMaxSuppression of 25,200 boxes in 80 classes, many or few above the bound
  flat*.onnx       a picture of one channel that becomes a row: computed, or the input itself

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

    def dynamic_conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1, middle=128):
        """A convolution of integers, with the scale and zero point of this run's source."""
        dims = [outputs, inputs // groups, kernel, kernel]
        scale = 3 * np.sqrt(2 / np.prod(dims[1:])) / 127
        integers = self.random.normal(0, 127 / 3, dims).clip(-127, 127).round()
        quantized, source_scale, zero = self.node('DynamicQuantizeLinear', [x], outputs=3)
        weights = self.constant((integers + middle).clip(0, 255).astype(np.uint8))
        weights_zero = self.constant(np.uint8(middle))
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

    def number(self, value, kind=np.float32):
        return self.constant(np.array(value, kind))

    def cast(self, x, to):
        return self.node('Cast', [x], to=to)

    def part(self, x, begin, end, axis):
        return self.node('Slice', [x] + [self.number([n], np.int64) for n in (begin, end, axis)])

    def reshape(self, x, *dims):
        return self.node('Reshape', [x, self.number(dims, np.int64)])

    def save(self, path, source, result, kind=TensorProto.FLOAT):
        graph = helper.make_graph(
            self.nodes, path.stem,
            [helper.make_tensor_value_info('x', kind, ['n'] + source)],
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


def integers(path, kind, number, arithmetic):
    """An operation on inputs of the type; u8 has no arithmetic in ONNX Runtime."""
    g = Graph()
    other = g.node('Where', [g.node('Less', ['x', g.number(30, number)]), 'x', g.number(5, number)])
    if arithmetic:
        sum_ = g.node('Add', [g.node('Mul', ['x', g.number(3, number)]), other])
        quotient = g.node('Div', [g.node('Sub', [sum_, 'x']), g.number(7, number)])
        other = g.node('Max', [g.node('Min', [quotient, sum_]), g.node('Abs', [other])])
    equal = g.node('Equal', ['x', g.number(3, number)])
    less = g.node('Less', [other, 'x'])
    both = g.node('And', [less, g.node('Not', [equal])])
    either = g.node('Or', [both, g.node('Greater', ['x', g.number(40, number)])])
    chosen = g.node('Where', [g.node('Xor', [either, equal]), 'x', other])
    g.save(path, [4, 96, 96], g.cast(chosen, TensorProto.FLOAT), kind)


def casts(path):
    g = Graph()
    x = g.node('Mul', ['x', g.number(100)])
    t = TensorProto
    for kind in (t.INT32, t.INT64, t.UINT8, t.INT32, t.INT8, t.INT64, t.FLOAT, t.BOOL, t.INT64,
                 t.FLOAT, t.UINT8, t.BOOL, t.FLOAT):
        x = g.cast(x, kind)
    g.save(path, [4, 96, 96], x)


def indices(path):
    g = Graph()
    number = lambda *numbers: g.number(numbers, np.int64)
    _, best = g.node('TopK', [g.reshape('x', 0, -1), number(300)], outputs=2, axis=1)
    place = g.node('Div', [best, g.number(80, np.int64)])
    label = g.node('Mod', [best, g.number(80, np.int64)])
    places = g.node('Expand', [g.node('Unsqueeze', [place, number(2)]), number(1, 1, 4)])
    boxes = g.node('GatherElements', [g.part('x', 0, 4, 2), places], axis=1)
    labels = g.cast(g.node('Unsqueeze', [label, number(2)]), TensorProto.FLOAT)
    g.save(path, [900, 80], g.node('Concat', [boxes, labels], axis=2))


def shifted(path):
    g = Graph()
    relu = lambda x: g.node('Relu', [x])
    conv = lambda *arguments: relu(g.dynamic_conv(*arguments, middle=117))
    x = conv('x', 3, 32, 3, 2)
    for inputs, outputs, stride in ((32, 64, 2), (64, 128, 2), (128, 128, 1)):
        x = conv(conv(x, inputs, outputs, 3, stride), outputs, outputs, 3)
        x = conv(relu(g.dynamic_conv(x, outputs, outputs, 3, 1, outputs, middle=117)), outputs,
                 outputs)
    g.save(path, [3, 112, 112], g.node('GlobalAveragePool', [x]))


def shifted_rows(path):
    g = Graph()

    def product(x, inputs, outputs):
        quantized, scale, zero = g.node('DynamicQuantizeLinear', [x], outputs=3)
        weights = (g.random.normal(0, 40, [inputs, outputs]).round() + 117).clip(0, 255)
        sums = g.node('MatMulInteger', [quantized, g.constant(weights.astype(np.uint8)), zero,
                                        g.number(117, np.uint8)])
        scales = g.node('Mul', [scale, g.number(.02 / np.sqrt(inputs))])
        real = g.node('Mul', [g.cast(sums, TensorProto.FLOAT), scales])
        return g.node('Add', [real, g.constant(g.numbers([outputs], 200))])

    x = 'x'
    for _ in range(4):
        y = g.node('Relu', [product(x, 384, 1536)])
        x = g.node('Add', [x, product(y, 1536, 384)])
    g.save(path, [197, 384], x)


def pairs(path):
    g = Graph()
    left = g.part('x', 0, 197, 2)
    right = g.node('Transpose', [g.part('x', 197, 394, 2)], perm=[0, 1, 3, 2])
    a, a_scale, a_zero = g.node('DynamicQuantizeLinear', [left], outputs=3)
    b, b_scale, b_zero = g.node('DynamicQuantizeLinear', [right], outputs=3)
    sums = g.cast(g.node('MatMulInteger', [a, b, a_zero, b_zero]), TensorProto.FLOAT)
    g.save(path, [6, 394, 64], g.node('Mul', [sums, g.node('Mul', [a_scale, b_scale])]))


def turned(path):
    g = Graph()
    g.save(path, [84, 8400], g.node('Transpose', [g.node('Sigmoid', ['x'])], perm=[0, 2, 1]))


def head(path):
    g = Graph()
    x, parts = 'x', []
    for _ in range(3):
        parts.append(g.reshape(g.conv(x, 16, 144), 0, 144, -1))
        x = g.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    whole = g.node('Concat', parts, axis=2)
    box, scores = g.node('Split', [whole, g.number([64, 80], np.int64)], outputs=2, axis=1)
    bins = g.node('Transpose', [g.reshape(box, 0, 4, 16, 8400)], perm=[0, 2, 1, 3])
    weights = g.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    sides = g.reshape(g.node('Conv', [g.node('Softmax', [bins], axis=1), weights]), 0, 4, 8400)
    points = g.constant(g.random.uniform(0, 80, [1, 2, 8400]).astype(np.float32))
    low = g.node('Sub', [points, g.part(sides, 0, 2, 1)])
    high = g.node('Add', [points, g.part(sides, 2, 4, 1)])
    center = g.node('Div', [g.node('Add', [low, high]), g.number(2)])
    steps = g.constant(g.random.uniform(8, 32, [1, 8400]).astype(np.float32))
    boxes = g.node('Mul', [g.node('Concat', [center, g.node('Sub', [high, low])], axis=1), steps])
    result = g.node('Concat', [boxes, g.node('Sigmoid', [scores])], axis=1)
    g.save(path, [16, 80, 80], g.node('Transpose', [result], perm=[0, 2, 1]))


def anchors(path):
    g = Graph()
    x, parts = 'x', []
    for side in (80, 40, 20):
        y = g.reshape(g.conv(x, 16, 255), 0, 3, 85, side, side)
        y = g.node('Sigmoid', [g.node('Transpose', [y], perm=[0, 1, 3, 4, 2])])
        place, size, rest = g.node('Split', [y, g.number([2, 2, 81], np.int64)], outputs=3, axis=4)
        grid = g.constant(g.random.uniform(0, side, [1, 3, side, side, 2]).astype(np.float32))
        place = g.node('Add', [g.node('Mul', [place, g.number(2)]), grid])
        place = g.node('Mul', [place, g.number(640 / side)])
        size = g.node('Pow', [g.node('Mul', [size, g.number(2)]), g.number(2)])
        sizes = g.constant(g.random.uniform(8, 90, [1, 3, side, side, 2]).astype(np.float32))
        boxes = g.node('Concat', [place, g.node('Mul', [size, sizes]), rest], axis=4)
        parts.append(g.reshape(boxes, 0, -1, 85))
        x = g.node('MaxPool', [x], kernel_shape=[2, 2], strides=[2, 2])
    g.save(path, [16, 80, 80], g.node('Concat', parts, axis=1))


def vectors(path, products, rows, size):
    g = Graph()
    x, matrices = g.part('x', 0, rows, 2), g.part('x', rows, rows + size, 2)
    for _ in range(8):
        x = g.node('Tanh', [g.node('MatMul', [x, matrices])])
    g.save(path, [products, rows + size, size], x)


def kept(path, scale, shift):
    g = Graph()
    sizes = g.node('Abs', [g.node('Mul', [g.part('x', 2, 4, 2), g.number(.1)])])
    sizes = g.node('Add', [sizes, g.number(.01)])
    corners = g.node('Concat', [g.part('x', 0, 2, 2), sizes], axis=2)
    scores = g.node('Mul', [g.part('x', 4, 84, 2), g.number(scale)])
    scores = g.node('Sigmoid', [g.node('Add', [scores, g.number(shift)])])
    by_class = g.node('Transpose', [scores], perm=[0, 2, 1])
    limits = [g.number([100], np.int64), g.number([.45]), g.number([.25])]
    places = g.node('NonMaxSuppression', [corners, by_class] + limits, center_point_box=1)
    g.save(path, [25200, 84], g.cast(places, TensorProto.FLOAT))


def flat(path, channels):
    g = Graph()
    x = 'x' if channels == 0 else g.node('Relu', [g.conv('x', channels, 1, 3)])
    row = g.node('Flatten', [x])
    weights = g.constant(g.numbers([1024, 56 * 56], 56 * 56))
    bias = g.constant(g.numbers([1024], 200))
    y = g.node('Relu', [g.node('Gemm', [row, weights, bias], transB=1)])
    g.save(path, [max(channels, 1), 56, 56], y)


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
    integers(folder / 'integers_s32.onnx', TensorProto.INT32, np.int32, arithmetic=True)
    integers(folder / 'integers_s64.onnx', TensorProto.INT64, np.int64, arithmetic=True)
    integers(folder / 'integers_u8.onnx', TensorProto.UINT8, np.uint8, arithmetic=False)
    casts(folder / 'casts.onnx')
    indices(folder / 'indices.onnx')
    shifted(folder / 'shifted.onnx')
    shifted_rows(folder / 'shifted_rows.onnx')
    pairs(folder / 'pairs.onnx')
    turned(folder / 'turned.onnx')
    head(folder / 'head.onnx')
    anchors(folder / 'anchors.onnx')
    vectors(folder / 'vectors_64.onnx', 21, 1, 64)
    vectors(folder / 'vectors_29.onnx', 100, 1, 29)
    vectors(folder / 'vectors_few.onnx', 21, 8, 16)
    kept(folder / 'kept.onnx', 1, 0)
    kept(folder / 'kept_few.onnx', 1.91, -3)
    flat(folder / 'flat.onnx', 32)
    flat(folder / 'flat_input.onnx', 0)


if __name__ == '__main__':
    main()
