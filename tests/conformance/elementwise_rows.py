# SPDX-License-Identifier: Apache-2.0
"""The cases that operator_table.py writes, by operator: a function of opset and element type that
gives inputs, attributes, and the outputs that numpy computes. Here are the operators of single
elements."""

import math

import numpy

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
TYPES = FLOATS + INTEGERS + ("bool",)

random = numpy.random.RandomState(1)


class Node:
    """The parts of a case that are written: the arrays that come in, the attributes, and what numpy
    gives."""

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
FIRST_AFTER_KNOWN = {"AffineGrid": 20, "BitwiseNot": 18, "BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18, "Gelu": 20, "Mish": 18}
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
