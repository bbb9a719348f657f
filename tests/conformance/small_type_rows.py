# SPDX-License-Identifier: Apache-2.0
"""Cases of numbers of 2 to 8 bits that are computed: QuantizeLinear and Cast to them, and back. What a code stands for
is counted up from 0 here, and the nearest is looked for among all numbers of the type."""

import numpy
from onnx import TensorProto

from graph_rows import CASES, case, packed, random, reals, spread

FLOAT, INT4, UINT4, UINT2, INT2 = 1, 22, 21, 25, 26


def counted(least_normal, per_power, largest):
    """The numbers from 0 on."""
    numbers, step = [0.0], least_normal / per_power
    while numbers[-1] < largest:
        numbers.append(numbers[-1] + step)
        last = len(numbers) - 1
        if last >= 2 * per_power and last % per_power == 0:
            step *= 2
    return numpy.array(numbers)


class SmallFloat:
    """`beyond` is what numbers larger than the largest become where they do not saturate."""

    def __init__(self, number, bits, least_normal, per_power, largest, beyond):
        self.number, self.bits, self.beyond = number, bits, beyond
        self.numbers = counted(least_normal, per_power, largest)
        self.per_power = per_power

    def nearest(self, x, saturates=True):
        largest = self.numbers[-1]
        next_number = 2 * largest - self.numbers[-2]  # what would follow the largest
        numbers = numpy.append(self.numbers, next_number)
        size = numpy.minimum(numpy.nan_to_num(numpy.abs(x).astype("float64"), posinf=next_number), next_number)
        above = numpy.clip(numpy.searchsorted(numbers, size), 1, len(numbers) - 1)
        below = above - 1
        to_above, to_below = numbers[above] - size, size - numbers[below]
        takes_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
        code = numpy.where(takes_above, above, below)
        result = numbers[code]
        result = numpy.where(code == len(numbers) - 1, largest if saturates else self.beyond, result)
        result = numpy.copysign(result, x)
        return numpy.where(numpy.isnan(x), largest if self.bits == 4 else numpy.nan, result).astype("float32")

    def samples(self):
        """All numbers, what lies between them, and what is too large."""
        middle = (self.numbers[1:] + self.numbers[:-1]) / 2
        some = numpy.concatenate([self.numbers, middle, middle * 0.999, middle * 1.001])
        largest = self.numbers[-1]
        ends = [largest * f for f in (1.01, 1.03, 1.036, 1.07, 1.12, 1.2, 2, 3, 1e6)] + [numpy.inf, 1e-30]
        some = numpy.concatenate([some, ends])
        return numpy.concatenate([some, -some, [numpy.nan]]).astype("float32")


NAN, INFINITY = numpy.nan, numpy.inf
SMALL_FLOATS = {
    "f4e2m1": SmallFloat(23, 4, 1, 2, 6, 6),
    "f8e4m3fn": SmallFloat(17, 8, 2.0**-6, 8, 448, NAN),
    "f8e4m3fnuz": SmallFloat(18, 8, 2.0**-7, 8, 240, NAN),
    "f8e5m2": SmallFloat(19, 8, 2.0**-14, 4, 57344, INFINITY),
    "f8e5m2fnuz": SmallFloat(20, 8, 2.0**-15, 4, 57344, NAN),
}


def computed_floats():
    for name, kind in SMALL_FLOATS.items():
        x = kind.samples()
        zero = packed("z", kind.number, kind.bits, numpy.array(0))
        for saturate in (0, 1):
            saturates = saturate == 1 or kind.bits == 4
            nodes = [("Cast", ["x"], ["q"], {"to": kind.number, "saturate": saturate}), ("Cast", ["q"], ["y"], {"to": FLOAT})]
            case(f"{name} by Cast, saturate {saturate}", nodes, {"x": x}, [kind.nearest(x, saturates)], opset=25)
            nodes[0] = ("QuantizeLinear", ["x", "s", "z"], ["q"], {"saturate": saturate})
            nodes[1] = ("DequantizeLinear", ["q", "s"], ["y"], {})
            constants = [("s", numpy.float32(0.25)), zero]
            y = kind.nearest(x * 4, saturates) / 4
            case(f"{name} and back, saturate {saturate}", nodes, {"x": x}, [y], constants, opset=25)
        half = x[numpy.abs(x) < 60000].astype("float16")
        nodes = [("CastLike", ["x", "z"], ["q"], {}), ("Cast", ["q"], ["y"], {"to": FLOAT})]
        case(f"{name} of f16, by CastLike", nodes, {"x": half}, [kind.nearest(half.astype("float32"))], [zero], opset=25)
        w, x, scale = reals(24, 6), reals(3, 24), reals(6) * 0.1 + 0.2
        nodes = [
            ("QuantizeLinear", ["w", "s", "z"], ["q"], {"axis": 1}),
            ("DequantizeLinear", ["q", "s"], ["d"], {"axis": 1}),
            ("MatMul", ["x", "d"], ["y"], {}),
        ]
        zeros = packed("z", kind.number, kind.bits, numpy.zeros(6, "int64"))
        case(f"weights quantized to {name}", nodes, {"x": x}, [x @ (kind.nearest(w / scale) * scale)], [("w", w), ("s", scale), zeros], opset=25)
        columns = packed("z", kind.number, kind.bits, numpy.zeros((8, 6), "int64"))
        scale = numpy.float32(2.0) ** random.randint(-4, 0, (8, 6)).astype("float32")
        nodes[0] = ("QuantizeLinear", ["w", "s", "z"], ["q"], {"axis": 0, "block_size": 3})
        nodes[1] = ("DequantizeLinear", ["q", "s"], ["d"], {"axis": 0, "block_size": 3})
        wide = spread(scale, 0, 3, 24)
        case(f"weights quantized to {name} in blocks", nodes, {"x": x}, [x @ (kind.nearest(w / wide) * wide)], [("w", w), ("s", scale), columns], opset=25)


SMALL_INTEGERS = {"int4": (INT4, 4, -8, 7), "uint4": (UINT4, 4, 0, 15), "int2": (INT2, 2, -2, 1), "uint2": (UINT2, 2, 0, 3)}


def wrapped(x, bits, least):
    return (numpy.rint(x).astype("int64") - least) % 2**bits + least


def computed_integers():
    for name, (number, bits, least, most) in SMALL_INTEGERS.items():
        def zero_points(*shape):
            return random.randint(least, most + 1, shape)

        def quantized(x, scale, zero):
            return numpy.clip(numpy.rint(x / scale) + zero, least, most)

        x, scale = reals(4, 6) * 8, numpy.float32(0.5)
        x[0, :4] = [1e9, -1e9, numpy.inf, -numpy.inf]
        pair = lambda **axis: [("QuantizeLinear", ["x", "s", "z"], ["q"], axis), ("DequantizeLinear", ["q", "s", "z"], ["y"], axis)]
        zero = zero_points()
        y = ((quantized(x, scale, zero) - zero) * scale).astype("float32")
        case(f"{name} and back", pair(), {"x": x}, [y], [("s", scale), packed("z", number, bits, zero)], opset=25)
        scale, zero = numpy.float32(2.0) ** random.randint(-2, 2, 6).astype("float32"), zero_points(6)
        y = ((quantized(x, scale, zero) - zero) * scale).astype("float32")
        case(f"{name} along an axis and back", pair(axis=1), {"x": x}, [y], [("s", scale), packed("z", number, bits, zero)], opset=25)
        scale, zero = numpy.float32(2.0) ** random.randint(-2, 2, (4, 2)).astype("float32"), zero_points(4, 2)
        wide, shift = spread(scale, 1, 4, 6), spread(zero, 1, 4, 6)
        y = ((quantized(x, wide, shift) - shift) * wide).astype("float32")
        constants = [("s", scale), packed("z", number, bits, zero)]
        case(f"{name} in blocks and back", pair(axis=1, block_size=4), {"x": x}, [y], constants, opset=25)
        x = reals(4, 6) * 20
        casts = lambda to: [("Cast", ["x"], ["q"], {"to": number}), ("Cast", ["q"], ["y"], {"to": to})]
        case(f"{name} by Cast", casts(FLOAT), {"x": x}, [wrapped(x, bits, least).astype("float32")], opset=25)
        integers = random.randint(-300, 300, (4, 6)).astype("int32")
        y = wrapped(integers, bits, least)
        case(f"{name} of int32, by Cast", casts(TensorProto.INT64), {"x": integers}, [y], opset=25)


def bytes_times_few_bits():
    """Integers of 4 bits with a zero point for each column are bytes less that, whose products need no f32."""
    x, scale = random.randint(0, 255, (5, 40)).astype("uint8"), numpy.float32(0.25)
    for name, (number, bits, least, most) in SMALL_INTEGERS.items():
        codes, zero = random.randint(least, most + 1, (40, 12)), random.randint(least, most + 1, 12)
        steps = numpy.float32(2.0) ** random.randint(-9, -6, 12).astype("float32")
        real = (x.astype("float64") - 120) * 0.25 @ ((codes - zero) * steps.astype("float64"))
        y = numpy.clip(numpy.rint(real / 0.5) + 128, 0, 255).astype("uint8")
        nodes = [
            ("DequantizeLinear", ["x", "s", "xz"], ["a"], {}),
            ("DequantizeLinear", ["w", "ws", "z"], ["d"], {"axis": 1}),
            ("MatMul", ["a", "d"], ["p"], {}),
            ("QuantizeLinear", ["p", "ys", "yz"], ["y"], {}),
        ]
        constants = [
            ("s", scale), ("xz", numpy.uint8(120)), packed("w", number, bits, codes), ("ws", steps),
            packed("z", number, bits, zero), ("ys", numpy.float32(0.5)), ("yz", numpy.uint8(128)),
        ]
        case(f"u8 times {name} of any zero points", nodes, {"x": x}, [y], constants, opset=25)
        turned = [packed("w", number, bits, codes.T.copy())] + [c for c in constants if getattr(c, "name", "") != "w"]
        nodes.insert(1, ("Transpose", ["w"], ["t"], {"perm": [1, 0]}))
        nodes[2] = ("DequantizeLinear", ["t", "ws", "z"], ["d"], {"axis": 1})
        case(f"u8 times {name} that is transposed", nodes, {"x": x}, [y], turned, opset=25)


def models():
    before = len(CASES)
    computed_floats()
    computed_integers()
    bytes_times_few_bits()
    return CASES[before:]
