# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 and VGG-16 as ONNX files, byte by byte, with weights made up from a seed.

As in their papers, batch normalisations folded, an input `image` [N,3,SIZE,SIZE] and an output `scores`
[N,classes]. `width` is the number of channels after the first convolution, 64 in the papers.
"""
import math

import numpy

from real_server import field, varint

POOL = 1 << 20  # numbers that all weights are cut from


def floats(name, dims, values):
    head = b''.join(varint(1, dim) for dim in dims) + varint(2, 1)
    return field(5, head + field(8, name.encode()) + field(9, values.astype('<f4').tobytes()))


def ints(name, values):
    return field(5, field(1, name.encode()) + b''.join(varint(8, value) for value in values) + b'\xa0\x01\x07')


class Network:
    """Nodes and weights under construction; methods return the name of their result."""

    def __init__(self, seed, size):
        self.pool = numpy.random.default_rng(seed).uniform(-1, 1, POOL).astype('f4')
        self.nodes, self.weights, self.count, self.size = [], [], 0, size

    def weight(self, dims, bound):
        self.count += 1
        name, count = f'w{self.count}', math.prod(dims)
        start = self.count * 7919 % POOL
        repeats = -(-(start + count) // POOL)
        values = numpy.tile(self.pool, repeats)[start:start + count] * bound
        self.weights.append(floats(name, dims, values))
        return name

    def node(self, operator, inputs, *attributes, output=None):
        self.count += 1
        output = output or f'v{self.count}'
        self.nodes.append(field(1, b''.join(field(1, name.encode()) for name in inputs)
                                + field(2, output.encode()) + field(3, f'n{self.count}'.encode())
                                + field(4, operator.encode()) + b''.join(attributes)))
        return output

    def conv(self, source, channels, outputs, kernel, stride=1, gain=1.0):
        weights = self.weight((outputs, channels, kernel, kernel),
                              gain * math.sqrt(6 / (channels * kernel * kernel)))
        return self.node('Conv', (source, weights, self.weight((outputs,), 0.1)),
                         ints('kernel_shape', [kernel] * 2), ints('strides', [stride] * 2),
                         ints('pads', [kernel // 2] * 4))

    def relu(self, source):
        return self.node('Relu', (source,))

    def pool_max(self, source, kernel, pad):
        return self.node('MaxPool', (source,), ints('kernel_shape', [kernel] * 2), ints('strides', [2] * 2),
                         ints('pads', [pad] * 4))

    def dense(self, source, inputs, outputs, output=None):
        transposed = field(5, field(1, b'transB') + varint(3, 1) + b'\xa0\x01\x02')
        weights = self.weight((outputs, inputs), math.sqrt(6 / inputs))
        return self.node('Gemm', (source, weights, self.weight((outputs,), 0.1)), transposed, output=output)

    def file(self, classes):
        def tensor(name, dims):
            shape = b''.join(field(1, field(2, dim) if isinstance(dim, bytes) else varint(1, dim)) for dim in dims)
            return field(1, name) + field(2, field(1, varint(1, 1) + field(2, shape)))
        graph = b''.join(self.nodes) + field(2, b'network') + b''.join(self.weights)
        graph += field(11, tensor(b'image', (b'N', 3, self.size, self.size)))
        graph += field(12, tensor(b'scores', (b'N', classes)))
        return varint(1, 8) + field(7, graph) + field(8, varint(2, 13))


def resnet50(seed=1, width=64, size=224, classes=1000):
    net = Network(seed, size)
    value = net.pool_max(net.relu(net.conv('image', 3, width, 7, 2)), 3, 1)
    channels = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        narrow = width << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            branch = net.relu(net.conv(value, channels, narrow, 1))
            branch = net.relu(net.conv(branch, narrow, narrow, 3, stride))
            branch = net.conv(branch, narrow, 4 * narrow, 1, gain=0.2)
            if not block:
                value = net.conv(value, channels, 4 * narrow, 1, stride)
            channels = 4 * narrow
            value = net.relu(net.node('Add', (branch, value)))
    value = net.node('Flatten', (net.node('GlobalAveragePool', (value,)),))
    net.dense(value, channels, classes, 'scores')
    return net.file(classes)


def vgg16(seed=1, width=64, size=224, classes=1000):
    net = Network(seed, size)
    value, channels = 'image', 3
    for stage, blocks in enumerate((2, 2, 3, 3, 3)):
        outputs = width << min(stage, 3)
        for _ in range(blocks):
            value, channels = net.relu(net.conv(value, channels, outputs, 3)), outputs
        value = net.pool_max(value, 2, 0)
    features, hidden = channels * (size // 32) ** 2, 64 * width
    value = net.relu(net.dense(net.node('Flatten', (value,)), features, hidden))
    net.dense(net.relu(net.dense(value, hidden, hidden)), hidden, classes, 'scores')
    return net.file(classes)
