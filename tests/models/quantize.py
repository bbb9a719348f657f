#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a quantised ONNX model from a float one: pairs of QuantizeLinear and DequantizeLinear around what reads integers.

Activations are u8 with a zero point, from the smallest and largest value that each tensor takes on sample data; weights are
s8, one scale per output channel. Of the operands of an Add, one that only a convolution gives stays in f32, unless
--every_operand is given.

Reads the folders that export_torchvision.py writes, or a digits folder (deploy/models/digits), and writes
DIR/<NAME>/1/model.onnx, and what torch gives for the same graph of pairs: DIR/<NAME>/input_<batch>.f32 and
output_<batch>.f32, raw little-endian f32.

  /usr/bin/python3 tests/models/quantize.py --out=DIR --float=MODEL.onnx --name=resnet50_int8 [--images=U8 --shape=3x24x20]
"""

import argparse
import pathlib

import numpy
import onnx
import torch
from onnx import helper, numpy_helper
from torch.nn import functional

BATCHES = (1, 3, 8)
SAMPLES = 16
OPSET = 13
KEEPS_GRID = ("MaxPool", "Reshape", "Transpose", "Flatten")
READS_INTEGERS = KEEPS_GRID + ("Conv", "Gemm", "GlobalAveragePool", "AveragePool", "Concat", "Add")


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def pooling_sizes(a):
    pads = a.get("pads", [0] * 4)
    assert pads[: len(pads) // 2] == pads[len(pads) // 2 :], "padding that differs between sides"
    return a["kernel_shape"], a.get("strides", [1, 1]), pads[: len(pads) // 2]


def convolve(a, x, w, b=None):
    pads = a.get("pads", [0] * 4)
    return functional.conv2d(functional.pad(x, (pads[1], pads[3], pads[0], pads[2])), w, b,
                             a.get("strides", 1), 0, a.get("dilations", 1), a.get("group", 1))


def max_pool(a, x):
    return functional.max_pool2d(x, *pooling_sizes(a), ceil_mode=bool(a.get("ceil_mode", 0)))


def average_pool(a, x):
    return functional.avg_pool2d(x, *pooling_sizes(a), ceil_mode=bool(a.get("ceil_mode", 0)),
                                 count_include_pad=bool(a.get("count_include_pad", 0)))


def along(axis, x, parameter):
    return parameter if parameter.dim() == 0 else parameter.reshape([-1 if d == axis else 1 for d in range(x.dim())])


def quantize(a, x, scale, zero):
    limits = torch.iinfo(zero.dtype)
    scaled = torch.round(x / along(a.get("axis", 1), x, scale)) + along(a.get("axis", 1), x, zero.float())
    return scaled.clamp(limits.min, limits.max).to(zero.dtype)


def dequantize(a, x, scale, zero):
    return (x.float() - along(a.get("axis", 1), x, zero.float())) * along(a.get("axis", 1), x, scale)


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())])


OPERATORS = {
    "Conv": convolve,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "Reshape": reshape,
    "Relu": lambda a, x: functional.relu(x),
    "Add": lambda a, x, y: x + y,
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "Transpose": lambda a, x: x.permute(a["perm"]).contiguous(),
    "Gemm": lambda a, x, w, b: functional.linear(x, w if a.get("transB", 0) else w.t(), b),
    "Constant": lambda a: torch.from_numpy(numpy_helper.to_array(a["value"]).copy()),
    "Identity": lambda a, x: x,
}


def run(graph, image):
    """All tensors of the graph, by torch."""
    tensors = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    tensors[graph.input[0].name] = image
    with torch.no_grad():
        for node in graph.node:
            values = [tensors[name] for name in node.input]
            tensors[node.output[0]] = OPERATORS[node.op_type](attributes(node), *values)
    return tensors


def fold_batch_norms(graph):
    weights = {t.name: t for t in graph.initializer}
    producers = {node.output[0]: node for node in graph.node}
    for node in [n for n in graph.node if n.op_type == "BatchNormalization"]:
        conv = producers[node.input[0]]
        assert conv.op_type == "Conv", "a batch normalisation behind something else"
        gamma, beta, mean, variance = (numpy_helper.to_array(weights[name]) for name in node.input[1:5])
        factor = gamma / numpy.sqrt(variance + attributes(node).get("epsilon", 1e-5))
        kernel = numpy_helper.to_array(weights[conv.input[1]]) * factor.reshape(-1, 1, 1, 1)
        bias = numpy_helper.to_array(weights[conv.input[2]]) if len(conv.input) > 2 else 0
        names = [conv.output[0] + ".weight", conv.output[0] + ".bias"]
        for name, value in zip(names, (kernel, (bias - mean) * factor + beta)):
            graph.initializer.append(numpy_helper.from_array(value.astype(numpy.float32), name))
        conv.input[:] = [conv.input[0]] + names
        conv.output[0] = node.output[0]
        graph.node.remove(node)


class Quantizer:
    def __init__(self, graph, ranges, every_operand):
        self.graph, self.ranges, self.every_operand = graph, ranges, every_operand
        self.constants = {t.name: t for t in graph.initializer}
        self.constants.update({n.output[0]: attributes(n)["value"] for n in graph.node if n.op_type == "Constant"})
        self.uses = {}
        for node in graph.node:
            for name in node.input:
                self.uses.setdefault(name, []).append(node)
        self.producers = {node.output[0]: node for node in graph.node}
        # Tensors that hold elements of another one.
        self.origins = {n.output[0]: n.input[0] for n in graph.node if n.op_type in KEEPS_GRID}
        self.grids, self.pairs, self.nodes = {}, {}, []

    def add(self, name, value):
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def grid(self, name):
        """Scale and zero point of an activation, shared by tensors that hold the same elements."""
        if name in self.origins:
            return self.grid(self.origins[name])
        if name not in self.grids:
            low, high = (min(self.ranges[name][0], 0), max(self.ranges[name][1], 0))
            scale = numpy.float32((high - low) / 255)
            zero = numpy.uint8(numpy.clip(round(-low / scale), 0, 255))
            self.grids[name] = [self.add(name + ".scale", scale), self.add(name + ".zero", zero)]
        return self.grids[name]

    def activation(self, name):
        if name not in self.pairs:
            grid = self.grid(name)
            self.nodes.append(helper.make_node("QuantizeLinear", [name] + grid, [name + ".q"]))
            self.nodes.append(helper.make_node("DequantizeLinear", [name + ".q"] + grid, [name + ".dq"]))
            self.pairs[name] = name + ".dq"
        return self.pairs[name]

    def weights(self, name, axis):
        value = numpy_helper.to_array(self.constants[name])
        rest = tuple(d for d in range(value.ndim) if d != axis)
        scale = numpy.maximum(numpy.abs(value).max(rest) / 127, 1e-8).astype(numpy.float32)
        shape = [-1 if d == axis else 1 for d in range(value.ndim)]
        integers = numpy.clip(numpy.rint(value / scale.reshape(shape)), -127, 127).astype(numpy.int8)
        inputs = [self.add(name + ".s8", integers), self.add(name + ".scale", scale),
                  self.add(name + ".zero", numpy.zeros(len(scale), numpy.int8))]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name + ".dq"], axis=axis))
        return name + ".dq"

    def stays_real(self, node):
        """The operand of an Add to which a convolution adds the others."""
        if node.op_type != "Add" or self.every_operand:
            return None
        for name in node.input:
            producer = self.producers.get(name)
            if producer is not None and producer.op_type == "Conv" and len(self.uses[name]) == 1:
                return name
        return None

    def run(self):
        for node in self.graph.node:
            if node.op_type in READS_INTEGERS:
                real = self.stays_real(node)
                for i, name in enumerate(node.input):
                    if name not in self.constants and name != real:
                        node.input[i] = self.activation(name)
            if node.op_type in ("Conv", "Gemm"):
                transposed = node.op_type == "Gemm" and not attributes(node).get("transB", 0)
                node.input[1] = self.weights(node.input[1], 1 if transposed else 0)
            self.nodes.append(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        used = {name for node in self.graph.node for name in node.input}
        kept = [t for t in self.graph.initializer if t.name in used]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)


def sample(args, count):
    if args.images is None:
        return torch.randn([count] + args.shape)
    images = numpy.fromfile(args.images, numpy.uint8).reshape([-1] + args.shape)
    picked = torch.randperm(len(images))[:count]
    return torch.from_numpy(images.astype(numpy.float32) / 255)[picked]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--float", dest="model", required=True, help="ONNX file")
    parser.add_argument("--name", required=True)
    parser.add_argument("--images", help="u8 pictures to sample, else normally distributed numbers")
    parser.add_argument("--shape", type=lambda s: [int(d) for d in s.split("x")], default=[3, 224, 224])
    parser.add_argument("--every_operand", action="store_true", help="pairs around every operand of an Add")
    args = parser.parse_args()
    torch.manual_seed(20240301)
    graph = onnx.load(args.model).graph
    fold_batch_norms(graph)
    ranges = {}
    for name, value in run(graph, sample(args, SAMPLES)).items():
        if value.is_floating_point():
            ranges[name] = (value.min().item(), value.max().item())
    Quantizer(graph, ranges, args.every_operand).run()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=7)
    onnx.checker.check_model(model)
    folder = args.out / args.name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "1" / "model.onnx"))
    for batch in BATCHES:
        image = sample(args, batch)
        result = run(graph, image)[graph.output[0].name]
        image.numpy().astype("<f4").tofile(folder / f"input_{batch}.f32")
        result.numpy().astype("<f4").tofile(folder / f"output_{batch}.f32")


if __name__ == "__main__":
    main()
