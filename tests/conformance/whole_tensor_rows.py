# SPDX-License-Identifier: Apache-2.0
"""As elementwise_rows.py, for operators of whole tensors."""

import numpy

from elementwise_rows import FLOATS, INTEGERS, Node, in_type, numbers, random, row


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


@row("Reshape", 5)
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


@row("Tile", 6)
def tile(opset, dtype):
    x = numbers((2, 3), dtype)
    return Node([x, integers([2, 1])], numpy.tile(x, (2, 1)))


@row("Expand")
def expand(opset, dtype):
    x = numbers((3, 1), dtype)
    return Node([x, integers([2, 1, 4])], numpy.broadcast_to(x, (2, 3, 4)))


@row("Pad", 2)
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


def affine_grid(sizes, align_corners):
    def node(opset, dtype):
        rank = len(sizes)
        theta = numbers((2, rank, rank + 1), dtype)
        axes = [numpy.linspace(-1, 1, n) if align_corners else (2 * numpy.arange(n) + 1) / n - 1 for n in sizes]
        points = list(reversed(numpy.meshgrid(*axes, indexing="ij"))) + [numpy.ones(sizes)]
        grid = in_type(lambda t: numpy.einsum("nij,j...->n...i", t, numpy.stack(points)), dtype)(theta)
        return Node([theta, integers([2, 1, *sizes])], grid, align_corners=align_corners)

    return node


row("AffineGrid", 20)(affine_grid((3, 4), 0))
row("AffineGrid", 20)(affine_grid((2, 5), 1))
row("AffineGrid", 20)(affine_grid((2, 3, 4), 0))


@row("MaxUnpool", 9)
def max_unpool(opset, dtype):
    """Back from 2x2 windows of 4x6 elements; at even opsets to 5x7, of which the last are zeros."""
    x = numbers((1, 2, 2, 3), dtype, 0.5, 2)
    corners = numpy.arange(48).reshape(1, 2, 4, 6)[:, :, ::2, ::2]
    indices = corners + random.randint(0, 2, corners.shape) + 6 * random.randint(0, 2, corners.shape)
    image = numpy.zeros(48, dtype)
    image[indices.reshape(-1)] = x.reshape(-1)
    image = image.reshape(1, 2, 4, 6)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    if opset % 2 == 1:
        return Node([x, indices.astype("int64")], image, **attributes)
    larger = numpy.pad(image, [(0, 0), (0, 0), (0, 1), (0, 1)])
    return Node([x, indices.astype("int64"), integers([1, 2, 5, 7])], larger, **attributes)


@row("DFT", 20)
def inverse_of_half(opset, dtype):
    x = numbers((2, 5, 2), dtype)
    length = 8 + opset % 2
    result = in_type(lambda a: numpy.fft.irfft(a[..., 0] + 1j * a[..., 1], n=length, axis=1)[..., None], dtype)(x)
    return Node([x, numpy.array(length, "int64"), numpy.array(1, "int64")], result, inverse=1, onesided=1)


def matmul_integer(a_type, b_type, depth, of_rows):
    """Sums that f32 does not hold, of the extremes of both types, with zero points at theirs."""

    def node(opset, dtype):
        if dtype != a_type:
            return None
        a_limits, b_limits = numpy.iinfo(a_type), numpy.iinfo(b_type)
        a = random.choice([a_limits.min, a_limits.max, 1], (2, 3, depth)).astype(a_type)
        b = random.choice([b_limits.min, b_limits.max - 1, 1], (depth, 5)).astype(b_type)
        a_zero = numpy.array([a_limits.min, 1, a_limits.max] if of_rows else 1).astype(a_type)
        b_zero = numpy.array([b_limits.min, 0, 1, 2, b_limits.max] if of_rows else b_limits.min).astype(b_type)
        wide = a.astype("int64") - (a_zero[:, None] if of_rows else a_zero).astype("int64")
        return Node([a, b, a_zero, b_zero], (wide @ (b.astype("int64") - b_zero)).astype("int32"))

    return node


for types in (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")):
    for depth in (7, 258, 259, 1500):
        row("MatMulInteger", 10)(matmul_integer(*types, depth, of_rows=False))
        row("MatMulInteger", 10)(matmul_integer(*types, depth, of_rows=True))


REDUCED = {"add": numpy.add, "mul": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum}


def scattered(reduction, of_tuples):
    """Several updates of one place."""

    def node(opset, dtype):
        if opset < (16 if reduction in ("add", "mul") else 18) or dtype == "bool":
            return None
        x, indices = numbers((4, 5), dtype), random.randint(-4, 4, (3, 5)).astype("int64")
        result = x.astype("float64" if dtype in FLOATS else dtype)
        if of_tuples:
            indices, updates = indices[:, :1], numbers((3, 5), dtype)
            for i, row_of in zip(indices[:, 0], updates):
                result[i] = REDUCED[reduction](result[i], row_of)
            return Node([x, indices, updates], result.astype(dtype), reduction=reduction)
        updates = numbers((3, 5), dtype)
        for (i, j), update in numpy.ndenumerate(updates):
            result[indices[i, j], j] = REDUCED[reduction](result[indices[i, j], j], update)
        return Node([x, indices, updates], result.astype(dtype), axis=0, reduction=reduction)

    return node


for reduction_name in REDUCED:
    row("ScatterElements", 16)(scattered(reduction_name, of_tuples=False))
    row("ScatterND", 16)(scattered(reduction_name, of_tuples=True))


@row("ReverseSequence", 10)
def reverse_sequence(opset, dtype):
    x, time = numbers((4, 3, 2), dtype), opset % 2
    lengths = random.randint(0, x.shape[time] + 1, x.shape[1 - time]).astype("int64")
    turned, result = x.swapaxes(0, time), x.copy().swapaxes(0, time)
    for item, length in enumerate(lengths):
        result[:length, item] = turned[:length, item][::-1]
    return Node([x, lengths], result.swapaxes(0, time), time_axis=time, batch_axis=1 - time)


@row("Det", 11)
def determinant(opset, dtype):
    x = numbers((2, 4, 4), dtype)
    return Node([x], in_type(numpy.linalg.det, dtype)(x))
