#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a case for each operator, opset from 6 to 25 and element type, with what numpy computes for it.

A case is a model of one node, its inputs and its outputs. The types of an operator at an opset are those of ONNX's own
schemas; opsets that are newer than the package at hand have those of its newest. At each opset there are f32 and every
fourth of the other types, in turn, unless all are asked for.

  /usr/bin/python3 tests/conformance/operator_table.py [--all_types] --out=FILE

FILE has one case after the other: its name, the model, the number of inputs, the inputs, the number of outputs, the
outputs. Numbers are of 4 bytes, little endian; everything else is preceded by its length.
"""

import argparse
import itertools
import math
import struct

import numpy
import onnx
from onnx import defs, helper, mapping, numpy_helper

OPSETS = range(6, 26)
NEWEST_KNOWN = 17
CAST_OPSETS = (6, 9, 13, 19, 21, 25)
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
TYPES = FLOATS + INTEGERS + ("bool",)
SCHEMA_NAMES = {"float32": "tensor(float)", "float64": "tensor(double)"}

random = numpy.random.RandomState(1)


class Node:
    """What is written of a case: the arrays that come in, the attributes, and what numpy gives."""

    def __init__(self, inputs, outputs, **attributes):
        self.inputs = inputs
        self.outputs = outputs if isinstance(outputs, list) else [outputs]
        self.attributes = attributes


def numbers(shape, dtype, low=-2.0, high=2.0):
    """Numbers between the bounds; integers are small, so that no sum of products overflows."""
    if dtype == "bool":
        return random.randint(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        least = 0 if dtype.startswith("u") else max(-3, math.ceil(low * 2))
        return random.randint(max(least, math.ceil(low)), 5, shape).astype(dtype)
    return random.uniform(low, high, shape).astype(dtype)


def in_type(function, dtype):
    """The function of arrays, computed in f64 and rounded once; of integers and truth values as numpy has it."""
    if dtype in FLOATS:
        return lambda *arrays: numpy.asarray(function(*[a.astype("float64") for a in arrays])).astype(dtype)
    return lambda *arrays: numpy.asarray(function(*arrays)).astype(dtype)


ROWS = []  # (operator, first opset, the function of opset and type that gives a Node or None)


def row(operator, since=1, domain_of=lambda dtype: True):
    def add(function):
        ROWS.append((operator, since, domain_of, function))
        return function

    return add


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


erf = numpy.vectorize(math.erf)

# Operators of one tensor: the function, the bounds of its argument, attributes.
UNARY = {
    "Abs": (numpy.abs, -2, 2, {}),
    "Acos": (numpy.arccos, -1, 1, {}),
    "Acosh": (numpy.arccosh, 1, 4, {}),
    "Asin": (numpy.arcsin, -1, 1, {}),
    "Asinh": (numpy.arcsinh, -4, 4, {}),
    "Atan": (numpy.arctan, -4, 4, {}),
    "Atanh": (numpy.arctanh, -0.9, 0.9, {}),
    "BitwiseNot": (numpy.invert, -2, 2, {}),
    "Ceil": (numpy.ceil, -4, 4, {}),
    "Celu": (lambda x: numpy.maximum(0, x) + numpy.minimum(0, 1.5 * numpy.expm1(x / 1.5)), -2, 2, {"alpha": 1.5}),
    "Cos": (numpy.cos, -4, 4, {}),
    "Cosh": (numpy.cosh, -2, 2, {}),
    "Elu": (lambda x: numpy.where(x < 0, 1.5 * numpy.expm1(x), x), -2, 2, {"alpha": 1.5}),
    "Erf": (erf, -2, 2, {}),
    "Exp": (numpy.exp, -2, 2, {}),
    "Floor": (numpy.floor, -4, 4, {}),
    "Gelu": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), -3, 3, {}),
    "HardSigmoid": (lambda x: numpy.clip(0.25 * x + 0.4, 0, 1), -4, 4, {"alpha": 0.25, "beta": 0.4}),
    "HardSwish": (lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1), -4, 4, {}),
    "Identity": (lambda x: x, -2, 2, {}),
    "LeakyRelu": (lambda x: numpy.where(x < 0, 0.25 * x, x), -2, 2, {"alpha": 0.25}),
    "Log": (numpy.log, 0.1, 4, {}),
    "Mish": (lambda x: x * numpy.tanh(numpy.log1p(numpy.exp(x))), -3, 3, {}),
    "Neg": (numpy.negative, -2, 2, {}),
    "Reciprocal": (lambda x: 1 / x, 0.5, 4, {}),
    "Relu": (lambda x: numpy.maximum(x, 0), -2, 2, {}),
    "Round": (numpy.rint, -4, 4, {}),
    "Selu": (lambda x: 1.5 * numpy.where(x < 0, 1.25 * numpy.expm1(x), x), -2, 2, {"alpha": 1.25, "gamma": 1.5}),
    "Shrink": (lambda x: numpy.where(x < -1, x + 0.5, numpy.where(x > 1, x - 0.5, 0)), -3, 3,
               {"bias": 0.5, "lambd": 1.0}),
    "Sigmoid": (sigmoid, -4, 4, {}),
    "Sign": (numpy.sign, -2, 2, {}),
    "Sin": (numpy.sin, -4, 4, {}),
    "Sinh": (numpy.sinh, -2, 2, {}),
    "Softplus": (lambda x: numpy.log1p(numpy.exp(x)), -4, 4, {}),
    "Softsign": (lambda x: x / (1 + numpy.abs(x)), -4, 4, {}),
    "Sqrt": (numpy.sqrt, 0, 4, {}),
    "Tan": (numpy.tan, -1, 1, {}),
    "Tanh": (numpy.tanh, -3, 3, {}),
    "ThresholdedRelu": (lambda x: numpy.where(x > 0.5, x, 0), -2, 2, {"alpha": 0.5}),
}
FIRST_AFTER_KNOWN = {"BitwiseNot": 18, "BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18, "Gelu": 20, "Mish": 18}
OF_INTEGERS_ALONE = ("BitwiseNot", "BitwiseAnd", "BitwiseOr", "BitwiseXor")


def unary(name):
    function, low, high, attributes = UNARY[name]

    def node(opset, dtype):
        x = numbers((2, 3, 5), dtype, low, high)
        return Node([x], in_type(function, dtype)(x), **attributes)

    return node


for name in UNARY:
    row(name, FIRST_AFTER_KNOWN.get(name, 1))(unary(name))

# Operators of two tensors; those of the second list give truth values.
BINARY = {
    "Add": numpy.add,
    "And": numpy.logical_and,
    "BitwiseAnd": numpy.bitwise_and,
    "BitwiseOr": numpy.bitwise_or,
    "BitwiseXor": numpy.bitwise_xor,
    "Div": lambda a, b: a / b,
    "Mul": numpy.multiply,
    "Or": numpy.logical_or,
    "Sub": numpy.subtract,
    "Xor": numpy.logical_xor,
}
COMPARISONS = {
    "Equal": numpy.equal,
    "Greater": numpy.greater,
    "GreaterOrEqual": numpy.greater_equal,
    "Less": numpy.less,
    "LessOrEqual": numpy.less_equal,
}


def binary(name):
    def node(opset, dtype):
        a = numbers((2, 3, 5), dtype)
        b = numbers((2, 3, 5) if opset < 7 else (3, 1), dtype, 1 if name == "Div" else -2)
        if name == "Div" and dtype in INTEGERS:
            a = numbers((2, 3, 5), dtype, 0)
            return Node([a, b], a // b)
        if name in COMPARISONS:
            return Node([a, b], COMPARISONS[name](a, b))
        return Node([a, b], in_type(BINARY[name], dtype)(a, b))

    return node


for name in list(BINARY) + list(COMPARISONS):
    row(name, FIRST_AFTER_KNOWN.get(name, 1))(binary(name))


@row("Pow")
def power(opset, dtype):
    a, b = numbers((2, 3), dtype, 1, 3), numbers((2, 3) if opset < 7 else (3,), dtype, 0, 2)
    return Node([a, b], in_type(numpy.power, dtype)(a, b))


@row("Mod")
def mod(opset, dtype):
    a, b = numbers((2, 3), dtype, 0, 9), numbers((3,), dtype, 1, 4)
    return Node([a, b], in_type(numpy.fmod, dtype)(a, b), fmod=1)


@row("PRelu")
def prelu(opset, dtype):
    x, slope = numbers((2, 3, 4), dtype), numbers((2, 3, 4) if opset < 7 else (3, 1), dtype)
    return Node([x, slope], in_type(lambda a, s: numpy.where(a < 0, a * s, a), dtype)(x, slope))


@row("BitShift")
def bit_shift(opset, dtype):
    a, b = numbers((2, 3), dtype, 0), numbers((3,), dtype, 0)
    return Node([a, b], numpy.left_shift(a, b), direction="LEFT")


@row("Where")
def where(opset, dtype):
    condition, a, b = numbers((2, 1, 3), "bool"), numbers((2, 3), dtype), numbers((2, 2, 3), dtype)
    return Node([condition, a, b], numpy.where(condition, a, b))


def several(function):
    def node(opset, dtype):
        parts = [numbers((2, 3), dtype), numbers((2, 3) if opset < 8 else (3,), dtype), numbers((2, 3), dtype)]
        return Node(parts, in_type(lambda *p: function(p), dtype)(*parts))

    return node


row("Max")(several(lambda p: numpy.maximum(numpy.maximum(p[0], p[1]), p[2])))
row("Min")(several(lambda p: numpy.minimum(numpy.minimum(p[0], p[1]), p[2])))
row("Sum")(several(lambda p: p[0] + p[1] + p[2]))
row("Mean")(several(lambda p: (p[0] + p[1] + p[2]) / 3))

REDUCTIONS = {
    "ReduceL1": lambda x, a: numpy.abs(x).sum(axis=a, keepdims=True),
    "ReduceL2": lambda x, a: numpy.sqrt((x * x).sum(axis=a, keepdims=True)),
    "ReduceLogSum": lambda x, a: numpy.log(x.sum(axis=a, keepdims=True)),
    "ReduceLogSumExp": lambda x, a: numpy.log(numpy.exp(x).sum(axis=a, keepdims=True)),
    "ReduceMax": lambda x, a: x.max(axis=a, keepdims=True),
    "ReduceMean": lambda x, a: x.mean(axis=a, keepdims=True),
    "ReduceMin": lambda x, a: x.min(axis=a, keepdims=True),
    "ReduceProd": lambda x, a: x.prod(axis=a, keepdims=True),
    "ReduceSum": lambda x, a: x.sum(axis=a, keepdims=True),
    "ReduceSumSquare": lambda x, a: (x * x).sum(axis=a, keepdims=True),
}


def reduction(name):
    def node(opset, dtype):
        if name in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean") and dtype in INTEGERS:
            return None  # numbers between integers, which ONNX leaves to the implementation
        x = numbers((2, 3, 4), dtype, 0.5, 2)
        result = in_type(lambda a: REDUCTIONS[name](a, (0, 2)), dtype)(x)
        if opset < (13 if name == "ReduceSum" else 18):
            return Node([x], result, axes=[0, 2])
        return Node([x, numpy.array([0, 2], "int64")], result)

    return node


for name in REDUCTIONS:
    row(name)(reduction(name))


def arg(function):
    def node(opset, dtype):
        x = random.permutation(24).reshape(2, 3, 4).astype(dtype)
        return Node([x], numpy.expand_dims(function(x, axis=1), 1).astype("int64"), axis=1)

    return node


row("ArgMax", domain_of=lambda dtype: dtype != "bool")(arg(numpy.argmax))
row("ArgMin", domain_of=lambda dtype: dtype != "bool")(arg(numpy.argmin))


@row("TopK")
def top_k(opset, dtype):
    x = random.permutation(24).reshape(4, 6).astype(dtype)
    order = numpy.argsort(-x.astype("float64"), axis=1)[:, :3]
    outputs = [numpy.take_along_axis(x, order, axis=1), order.astype("int64")]
    if opset < 10:
        return Node([x], outputs, k=3)
    return Node([x, numpy.array([3], "int64")], outputs)


def integers(values):
    return numpy.array(values, dtype="int64")


@row("Transpose")
def transpose(opset, dtype):
    x = numbers((2, 3, 4), dtype)
    return Node([x], x.transpose(1, 2, 0), perm=[1, 2, 0])


@row("Reshape")
def reshape(opset, dtype):
    x = numbers((2, 3, 4), dtype)
    return Node([x, integers([0, -1])], x.reshape(2, 12))


@row("Flatten")
def flatten(opset, dtype):
    x = numbers((2, 3, 4), dtype)
    return Node([x], x.reshape(6, 4), axis=2)


@row("Squeeze")
def squeeze(opset, dtype):
    x = numbers((2, 1, 4, 1), dtype)
    if opset < 13:
        return Node([x], x.reshape(2, 4), axes=[1, 3])
    return Node([x, integers([1, 3])], x.reshape(2, 4))


@row("Unsqueeze")
def unsqueeze(opset, dtype):
    x = numbers((2, 4), dtype)
    if opset < 13:
        return Node([x], x.reshape(1, 2, 4, 1), axes=[0, 3])
    return Node([x, integers([0, 3])], x.reshape(1, 2, 4, 1))


@row("Slice")
def slices(opset, dtype):
    x = numbers((4, 5), dtype)
    if opset < 10:
        return Node([x], x[1:3, 0:4], axes=[0, 1], starts=[1, 0], ends=[3, -1])
    return Node([x, integers([3, 0]), integers([0, 5]), integers([0, 1]), integers([-1, 2])], x[3:0:-1, 0:5:2])


@row("Split")
def split(opset, dtype):
    x = numbers((5, 2), dtype)
    if opset < 13:
        return Node([x], [x[:2], x[2:]], axis=0, split=[2, 3])
    if opset >= 18 and dtype == "float32":
        return Node([x], [x[:3], x[3:]], axis=0, num_outputs=2)
    return Node([x, integers([2, 3])], [x[:2], x[2:]], axis=0)


@row("Concat")
def concat(opset, dtype):
    a, b = numbers((2, 3), dtype), numbers((2, 2), dtype)
    return Node([a, b], numpy.concatenate([a, b], axis=1), axis=1)


@row("Gather")
def gather(opset, dtype):
    x = numbers((4, 3), dtype)
    return Node([x, integers([[3, 0], [1, 1]])], x[[[3, 0], [1, 1]]], axis=0)


@row("GatherElements")
def gather_elements(opset, dtype):
    x, indices = numbers((3, 3), dtype), integers([[2, 0, 1], [0, 0, 2]])
    return Node([x, indices], numpy.take_along_axis(x, indices, axis=0), axis=0)


@row("GatherND")
def gather_nd(opset, dtype):
    x = numbers((3, 4, 2), dtype)
    return Node([x, integers([[2, 1], [0, 3]])], x[[2, 0], [1, 3]])


@row("ScatterElements")
def scatter_elements(opset, dtype):
    x, updates, indices = numbers((3, 3), dtype), numbers((1, 3), dtype), integers([[2, 0, 1]])
    result = x.copy()
    numpy.put_along_axis(result, indices, updates, axis=0)
    return Node([x, indices, updates], result, axis=0)


@row("ScatterND")
def scatter_nd(opset, dtype):
    x, updates = numbers((4, 3), dtype), numbers((2, 3), dtype)
    result = x.copy()
    result[[3, 1]] = updates
    return Node([x, integers([[3], [1]]), updates], result)


@row("Tile")
def tile(opset, dtype):
    x = numbers((2, 3), dtype)
    return Node([x, integers([2, 1])], numpy.tile(x, (2, 1)))


@row("Expand")
def expand(opset, dtype):
    x = numbers((3, 1), dtype)
    return Node([x, integers([2, 1, 4])], numpy.broadcast_to(x, (2, 3, 4)))


@row("Pad")
def pad(opset, dtype):
    x = numbers((2, 3), dtype)
    widths, padded = [0, 1, 1, 2], [(0, 1), (1, 2)]
    if opset < 11:
        return Node([x], numpy.pad(x, padded, constant_values=1), pads=widths, value=1.0)
    one = numpy.array(1).astype(dtype)
    return Node([x, integers(widths), one], numpy.pad(x, padded, constant_values=one))


@row("DepthToSpace")
def depth_to_space(opset, dtype):
    x = numbers((1, 8, 2, 3), dtype)
    parts = x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2)
    return Node([x], parts.reshape(1, 2, 4, 6), blocksize=2)


@row("SpaceToDepth")
def space_to_depth(opset, dtype):
    x = numbers((1, 2, 4, 6), dtype)
    parts = x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4)
    return Node([x], parts.reshape(1, 8, 2, 3), blocksize=2)


@row("Trilu")
def trilu(opset, dtype):
    x = numbers((2, 4, 4), dtype)
    return Node([x, numpy.array(1, "int64")], numpy.triu(x, 1), upper=1)


@row("CumSum")
def cumulative_sum(opset, dtype):
    x = numbers((2, 4), dtype)
    return Node([x, numpy.array(1, "int64")], in_type(lambda a: numpy.cumsum(a, axis=1), dtype)(x))


@row("Shape")
def shape(opset, dtype):
    return Node([numbers((2, 3, 4), dtype)], integers([2, 3, 4]))


@row("Size")
def size(opset, dtype):
    return Node([numbers((2, 3, 4), dtype)], numpy.array(24, "int64"))


@row("Clip")
def clip(opset, dtype):
    if dtype.startswith("uint"):
        x, low, high = numbers((2, 5), dtype), 1, 3
    else:
        x, low, high = numbers((2, 5), dtype), -1, 1
    result = numpy.clip(x, low, high).astype(dtype)
    if opset < 11:
        return Node([x], result, min=float(low), max=float(high))
    return Node([x, numpy.array(low).astype(dtype), numpy.array(high).astype(dtype)], result)


def softmax(x, axis):
    shifted = numpy.exp(x - x.max(axis=axis, keepdims=True))
    return shifted / shifted.sum(axis=axis, keepdims=True)


def normalised(function):
    """Before opset 13 the axes from the given one on are one."""

    def node(opset, dtype):
        x = numbers((2, 3, 4), dtype)
        compute = in_type(lambda a: function(a, -1), dtype)
        if opset < 13:
            return Node([x], compute(x.reshape(2, 12)).reshape(2, 3, 4), axis=1)
        return Node([x], compute(x), axis=2)

    return node


row("Softmax")(normalised(softmax))
row("LogSoftmax")(normalised(lambda x, axis: numpy.log(softmax(x, axis))))
row("Hardmax")(normalised(lambda x, axis: (numpy.arange(x.shape[-1]) == x.argmax(-1)[..., None]).astype(x.dtype)))


@row("MatMul")
def matmul(opset, dtype):
    a, b = numbers((2, 3, 4), dtype), numbers((4, 5), dtype)
    return Node([a, b], in_type(numpy.matmul, dtype)(a, b))


@row("Gemm")
def gemm(opset, dtype):
    a, b, c = numbers((4, 3), dtype), numbers((5, 4), dtype), numbers((3, 5) if opset < 7 else (5,), dtype)
    return Node([a, b, c], in_type(lambda x, y, z: x.T @ y.T + z, dtype)(a, b, c), transA=1, transB=1)


def window(function):
    def node(opset, dtype):
        x = numbers((1, 2, 5, 6), dtype)
        parts = numpy.stack([x[:, :, i : i + 4, j : j + 5] for i in range(2) for j in range(2)])
        return Node([x], in_type(lambda p: function(p, axis=0), dtype)(parts), kernel_shape=[2, 2])

    return node


row("MaxPool")(window(numpy.max))
row("AveragePool")(window(numpy.mean))


def of_image(function):
    def node(opset, dtype):
        x = numbers((2, 3, 4, 5), dtype)
        return Node([x], in_type(lambda a: function(a, axis=(2, 3), keepdims=True), dtype)(x))

    return node


row("GlobalMaxPool")(of_image(numpy.max))
row("GlobalAveragePool")(of_image(numpy.mean))


@row("Conv")
def conv(opset, dtype):
    x, w, b = numbers((1, 3, 5, 6), dtype), numbers((4, 3, 2, 2), dtype), numbers((4,), dtype)

    def product(x, w, b):
        taps = [numpy.einsum("ncij,oc->noij", x[:, :, i : i + 4, j : j + 5], w[:, :, i, j])
                for i in range(2) for j in range(2)]
        return sum(taps) + b[None, :, None, None]

    return Node([x, w, b], in_type(product, dtype)(x, w, b), kernel_shape=[2, 2])


@row("InstanceNormalization")
def instance_normalization(opset, dtype):
    x, scale, bias = numbers((2, 3, 4, 5), dtype), numbers((3,), dtype), numbers((3,), dtype)

    def normalise(x, s, b):
        centred = x - x.mean(axis=(2, 3), keepdims=True)
        scaled = centred / numpy.sqrt(x.var(axis=(2, 3), keepdims=True) + 1e-3)
        return scaled * s[:, None, None] + b[:, None, None]

    return Node([x, scale, bias], in_type(normalise, dtype)(x, scale, bias), epsilon=1e-3)


@row("LayerNormalization")
def layer_normalization(opset, dtype):
    x, scale, bias = numbers((2, 3, 4), dtype), numbers((4,), dtype), numbers((4,), dtype)

    def normalise(x, s, b):
        return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-3) * s + b

    return Node([x, scale, bias], in_type(normalise, dtype)(x, scale, bias), epsilon=1e-3)


@row("BatchNormalization")
def batch_normalization(opset, dtype):
    x = numbers((2, 3, 4), dtype)
    s, b, mean, var = (numbers((3,), dtype, low, 2) for low in (-2, -2, -2, 0.5))

    def normalise(*arrays):
        x, s, b, mean, var = [arrays[0]] + [a[:, None] for a in arrays[1:]]
        return (x - mean) / numpy.sqrt(var + 1e-3) * s + b

    attributes = {"is_test": 1} if opset < 7 else {}
    return Node([x, s, b, mean, var], in_type(normalise, dtype)(x, s, b, mean, var), epsilon=1e-3, **attributes)


def type_number(dtype):
    return mapping.NP_TYPE_TO_TENSOR_TYPE[numpy.dtype(dtype)]


def casts():
    for opset in CAST_OPSETS:
        for source in TYPES:
            for target in TYPES:
                x = numbers((2, 3), source, 0 if target.startswith("u") else -2)
                yield f"Cast {source} to {target}", opset, "Cast", Node([x], x.astype(target), to=type_number(target))


def known_types(operator, opset):
    """Those of the first input at that opset; of what was added later, those of numbers."""
    if operator in OF_INTEGERS_ALONE:
        return INTEGERS
    if operator in FIRST_AFTER_KNOWN:
        return FLOATS
    try:
        schema = defs.get_schema(operator, min(opset, NEWEST_KNOWN), "")
    except defs.SchemaError:
        return ()
    allowed = schema.inputs[1 if operator == "Where" else 0].types
    return [t for t in TYPES if SCHEMA_NAMES.get(t, f"tensor({t})") in allowed]


def operators(all_types):
    for operator, since, domain_of, function in ROWS:
        for opset in OPSETS:
            for dtype in known_types(operator, opset) if opset >= since else ():
                if not all_types and dtype != "float32" and (TYPES.index(dtype) + opset) % 4 != 0:
                    continue
                node = function(opset, dtype) if domain_of(dtype) else None
                if node is not None:
                    yield f"{operator} {dtype}", opset, operator, node


def write(out, message):
    out.write(struct.pack("<I", len(message)) + message)


def write_arrays(out, arrays):
    out.write(struct.pack("<I", len(arrays)))
    for array in arrays:
        write(out, numpy_helper.from_array(numpy.ascontiguousarray(array).reshape(array.shape)).SerializeToString())


def declared(name, array):
    return helper.make_tensor_value_info(name, type_number(array.dtype), array.shape)


def write_case(out, name, opset, operator, node):
    inputs = [f"in{i}" for i in range(len(node.inputs))]
    outputs = [f"out{i}" for i in range(len(node.outputs))]
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, outputs, **node.attributes)],
        "case",
        [declared(n, a) for n, a in zip(inputs, node.inputs)],
        [declared(n, a) for n, a in zip(outputs, node.outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    write(out, f"{name} opset {opset}".encode())
    write(out, model.SerializeToString())
    write_arrays(out, node.inputs)
    write_arrays(out, node.outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--all_types", action="store_true", help="every type at every opset")
    args = parser.parse_args()
    with numpy.errstate(all="ignore"), open(args.out, "wb") as out:
        for case in itertools.chain(operators(args.all_types), casts()):
            write_case(out, *case)


if __name__ == "__main__":
    main()
