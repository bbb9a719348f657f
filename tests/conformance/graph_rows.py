# SPDX-License-Identifier: Apache-2.0
"""Cases of several nodes, of known weights in types that numpy lacks, and of ONNX Runtime's own operators: what
operator_table.py writes beside its rows. A case has a name, a model, the arrays that come in and those that go out."""

import numpy
from onnx import TensorProto, helper, mapping, numpy_helper

random = numpy.random.RandomState(7)
INT4, UINT4, FLOAT4, FLOAT8 = 22, 21, 23, 17

CASES = []


def type_number(dtype):
    return mapping.NP_TYPE_TO_TENSOR_TYPE[numpy.dtype(dtype)]


def reals(*shape):
    return random.uniform(-1, 1, shape).astype("float32")


def packed(name, number, bits, codes):
    """An initializer of elements of fewer than 8 bits, or of 8 that numpy has no type for."""
    tensor = TensorProto(name=name, data_type=number, dims=codes.shape)
    flat = codes.astype("uint8").ravel() & (2**bits - 1)
    per_byte = 8 // bits
    flat = numpy.append(flat, numpy.zeros(-len(flat) % per_byte, "uint8")).reshape(-1, per_byte)
    tensor.raw_data = sum(flat[:, i].astype("int") << (bits * i) for i in range(per_byte)).astype("uint8").tobytes()
    return tensor


def case(name, nodes, inputs, outputs, constants=(), opset=21):
    """`inputs` and `constants`: arrays by name, or tensors. `nodes`: operator, inputs, outputs, attributes."""
    made = []
    for operator, sources, results, attributes in nodes:
        domain, _, kind = operator.rpartition(".")
        made.append(helper.make_node(kind, sources, results, domain=domain, **attributes))
    known = [c if isinstance(c, TensorProto) else numpy_helper.from_array(c[1], c[0]) for c in constants]
    results = nodes[-1][2] if len(outputs) == len(nodes[-1][2]) else [f"out{i}" for i in range(len(outputs))]
    graph = helper.make_graph(
        made,
        "case",
        [helper.make_tensor_value_info(n, type_number(a.dtype), a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, type_number(a.dtype), a.shape) for n, a in zip(results, outputs)],
        known,
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    CASES.append((name, model, list(inputs.values()), list(outputs)))


def spread(parameter, axis, block, size):
    """One parameter for each element of blocks."""
    return numpy.repeat(parameter, block, axis).take(range(size), axis)


# Numbers of 8 and 4 bits by their codes, as ONNX's documents have them.
FLOAT8_NUMBERS = {0x00: 0.0, 0x38: 1.0, 0x3C: 1.5, 0xC0: -2.0, 0x7E: 448.0, 0x01: 2.0**-9, 0x88: -(2.0**-6)}
FLOAT4_NUMBERS = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)


def weights_of_few_bits():
    x = reals(3, 20)
    for name, number, low, high in (("int4", INT4, -8, 8), ("uint4", UINT4, 0, 16)):
        codes = random.randint(low, high, (20, 5))
        scale, zero = reals(5) + 2, random.randint(max(low, 0), high, 5)
        w = ((codes - zero) * scale).astype("float32")
        constants = [packed("w", number, 4, codes), ("s", scale), packed("z", number, 4, zero)]
        nodes = [("DequantizeLinear", ["w", "s", "z"], ["d"], {"axis": 1}), ("MatMul", ["x", "d"], ["y"], {})]
        case(f"{name} along an axis", nodes, {"x": x}, [x @ w], constants)
        scale, zero = reals(3, 5), random.randint(max(low, 0), high, (3, 5))
        w = ((codes - spread(zero, 0, 8, 20)) * spread(scale, 0, 8, 20)).astype("float32")
        constants = [packed("w", number, 4, codes), ("s", scale), packed("z", number, 4, zero)]
        nodes[0] = ("DequantizeLinear", ["w", "s", "z"], ["d"], {"axis": 0, "block_size": 8})
        case(f"{name} in blocks", nodes, {"x": x}, [x @ w], constants)
    codes = numpy.array(list(FLOAT8_NUMBERS))
    y = numpy.array(list(FLOAT8_NUMBERS.values()), "float32") * 0.5
    constants = [packed("w", FLOAT8, 8, codes), ("s", numpy.float32(0.5))]
    nodes = [("DequantizeLinear", ["w", "s"], ["d"], {}), ("Add", ["x", "d"], ["y"], {})]
    case("f8", nodes, {"x": y * 0}, [y], constants)
    codes = numpy.arange(16).reshape(4, 4)
    scale = (reals(2, 4) + 2).astype("float16")
    y = numpy.array(FLOAT4_NUMBERS, "float32").reshape(4, 4) * spread(scale, 0, 2, 4).astype("float32")
    constants = [packed("w", FLOAT4, 4, codes), ("s", scale)]
    nodes[0] = ("DequantizeLinear", ["w", "s"], ["d"], {"axis": 0, "block_size": 2, "output_dtype": 1})
    case("f4 in blocks", nodes, {"x": y * 0}, [y], constants, opset=23)


def blocks_of_computed_numbers():
    x, scale = reals(2, 7) * 9, reals(2, 3) * 0.1 + 0.3
    zero = random.randint(100, 150, (2, 3)).astype("uint8")
    at = numpy.rint(x / spread(scale, 1, 3, 7)) + spread(zero, 1, 3, 7)
    q = numpy.clip(at, 0, 255).astype("uint8")
    blocks = {"axis": 1, "block_size": 3}
    case("quantized in blocks", [("QuantizeLinear", ["x", "s", "z"], ["y"], blocks)], {"x": x, "s": scale, "z": zero}, [q])
    y = (q.astype("float32") - spread(zero, 1, 3, 7)) * spread(scale, 1, 3, 7)
    case("dequantized in blocks", [("DequantizeLinear", ["q", "s", "z"], ["y"], blocks)], {"q": q, "s": scale, "z": zero}, [y])


def activations_of_16_bits():
    for dtype, zero in (("uint16", 30000), ("int16", -5)):
        limits = numpy.iinfo(dtype)
        x = numpy.append(reals(2, 30).ravel() * 30, [-1e6, 1e6, 0.5, 1.5]).astype("float32").reshape(4, 16)
        scale, zero = numpy.float32(0.25), numpy.array(zero, dtype)
        q = numpy.clip(numpy.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)
        y = (q.astype("float32") - zero) * scale
        constants = [("s", scale), ("z", zero)]
        nodes = [("QuantizeLinear", ["x", "s", "z"], ["out0"], {}), ("DequantizeLinear", ["out0", "s", "z"], ["out1"], {})]
        case(f"{dtype} and back", nodes, {"x": x}, [q, y], constants)
        scale = numpy.array([0.25, 0.5, 1, 2], "float32")
        zeros = numpy.array([zero, 0, 1, 2], dtype)
        q = numpy.clip(numpy.rint(x / scale[:, None]) + zeros[:, None], limits.min, limits.max).astype(dtype)
        nodes = [("QuantizeLinear", ["x", "s", "z"], ["y"], {"axis": 0})]
        case(f"{dtype} along an axis", nodes, {"x": x}, [q], [("s", scale), ("z", zeros)])


def pack_rows(codes, bits):
    """Rows of codes as rows of bytes."""
    per_byte = 8 // bits
    codes = numpy.pad(codes, ((0, 0), (0, -codes.shape[1] % per_byte))).reshape(codes.shape[0], -1, per_byte)
    return sum(codes[:, :, i] << (bits * i) for i in range(per_byte)).astype("uint8")


def products_of_few_bits():
    for bits, k, n, block in ((4, 64, 6, 32), (4, 40, 5, 16), (8, 32, 4, 16), (2, 48, 3, 16)):
        blocks = -(-k // block)
        codes = random.randint(0, 2**bits, (n, blocks * block))
        scale = reals(n, blocks)
        b = pack_rows(codes, bits).reshape(n, blocks, -1)
        x, bias = reals(2, 3, k), reals(n)
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        middle = numpy.full((n, blocks), 2 ** (bits - 1))
        integer = random.randint(0, 2**bits, (n, blocks))
        for name, zero, tensor in (
            ("no zero points", middle, None),
            ("packed zero points", integer, pack_rows(integer, bits).ravel()),
            ("real zero points", integer + 0.25, (integer + 0.25).astype("float32").ravel()),
        ):
            w = (codes - numpy.repeat(zero, block, 1))[:, :k] * numpy.repeat(scale, block, 1)[:, :k]
            constants = [("b", b), ("s", scale.ravel()), ("c", bias)] + ([] if tensor is None else [("z", tensor)])
            sources = ["x", "b", "s", "" if tensor is None else "z", "", "c"]
            y = (x @ w.T + bias).astype("float32")
            nodes = [("com.microsoft.MatMulNBits", sources, ["y"], attributes)]
            case(f"MatMulNBits of {bits} bits, {k} in {block}, {name}", nodes, {"x": x}, [y], constants)
    codes, scale, zero = random.randint(0, 16, (9, 32)), reals(9, 2), random.randint(0, 16, (9, 2))
    table = ((codes - numpy.repeat(zero, 16, 1)) * numpy.repeat(scale, 16, 1)).astype("float32")
    i = numpy.array([[3, 0], [-1, 8]], "int64")
    constants = [("t", pack_rows(codes, 4)), ("s", scale), ("z", pack_rows(zero, 4))]
    nodes = [("com.microsoft.GatherBlockQuantized", ["t", "i", "s", "z"], ["y"], {"block_size": 16})]
    case("GatherBlockQuantized", nodes, {"i": i}, [table[i]], constants)


def softmax(x):
    exp = numpy.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def heads_of(x, count):
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(0, 2, 1, 3)


def together(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attended(q, k, v, mask=0.0, causal_after=None):
    """The attention of heads; `mask` is added, and query i sees `causal_after` + i + 1 keys."""
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(q.shape[3]) + mask
    if causal_after is not None:
        places = numpy.arange(k.shape[2])[None, :] > numpy.arange(q.shape[2])[:, None] + causal_after
        scores = numpy.where(places, -numpy.inf, scores)
    return together(softmax(scores) @ v).astype("float32")


def attention_with_masks_and_past():
    batch, length, count, size, past = 2, 3, 2, 4, 2
    x, w, b = reals(batch, length, 8), reals(8, 24), reals(24)
    q, k, v = (heads_of(part, count) for part in numpy.split(x @ w + b, 3, -1))
    operator = "com.microsoft.Attention"
    attributes = {"num_heads": count, "mask_filter_value": -3.0}
    constants = [("w", w), ("b", b)]
    places = numpy.arange(length)
    ends, ranges = numpy.array([1, 2]), numpy.array([3, 2, 1, 0])
    rows, squares = random.randint(0, 2, (batch, length)), random.randint(0, 2, (batch, length, length))
    for name, mask, takes in (
        ("of rows", rows, rows[:, None, None] > 0),
        ("of squares", squares, squares[:, None] > 0),
        ("of ends", ends, (places < ends[:, None])[:, None, None]),
        ("of ranges", ranges, ((places < ranges[:2, None]) & (places >= ranges[2:, None]))[:, None, None]),
    ):
        y = attended(q, k, v, numpy.where(takes, 0, -3.0))
        nodes = [(operator, ["x", "w", "b", "m"], ["y"], attributes)]
        case(f"Attention with a mask {name}", nodes, {"x": x, "m": mask.astype("int32")}, [y], constants)
    before = reals(2, batch, count, past, size)
    bias, rows = reals(1, count, length, past + length), random.randint(0, 2, (batch, past + length))
    k, v = numpy.concatenate([before[0], k], 2), numpy.concatenate([before[1], v], 2)
    y = attended(q, k, v, numpy.where(rows[:, None, None] > 0, 0, -3.0) + bias, causal_after=past)
    nodes = [(operator, ["x", "w", "b", "m", "p", "a"], ["y", "present"], {**attributes, "unidirectional": 1})]
    inputs = {"x": x, "m": rows.astype("int32"), "p": before, "a": bias}
    case("Attention after a past", nodes, inputs, [y, numpy.stack([k, v])], constants)


def attention_of_heads_with_past():
    batch, length, count, size, past = 2, 3, 2, 4, 2
    q, k, v, b = reals(batch, length, 8), reals(batch, length, 8), reals(batch, length, 8), reals(24)
    past_k, past_v = reals(batch, count, past, size), reals(batch, count, past, size)
    rows = random.randint(0, 2, (batch, past + length))
    all_k = numpy.concatenate([past_k, heads_of(k + b[8:16], count)], 2)
    all_v = numpy.concatenate([past_v, heads_of(v + b[16:], count)], 2)
    mask = numpy.where(rows[:, None, None] > 0, 0, -10000.0)
    y = attended(heads_of(q + b[:8], count), all_k, all_v, mask)
    nodes = [("com.microsoft.MultiHeadAttention", ["q", "k", "v", "b", "m", "", "pk", "pv"], ["y", "ck", "cv"], {"num_heads": count})]
    inputs = {"q": q, "k": k, "v": v, "m": rows.astype("int32"), "pk": past_k, "pv": past_v}
    case("MultiHeadAttention after a past", nodes, inputs, [y, all_k, all_v], [("b", b)])


def normalized(x, scale, shift):
    centered = x - x.mean(-1, keepdims=True)
    return (centered / numpy.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + shift).astype("float32")


def embeddings():
    word, position, segment, scale, shift = reals(10, 8), reals(6, 8), reals(2, 8), reals(8), reals(8)
    ids, segments = random.randint(0, 10, (2, 4)).astype("int32"), random.randint(0, 2, (2, 4)).astype("int32")
    mask = numpy.array([[1, 1, 1, 0], [1, 1, 1, 1]], "int32")
    constants = [("w", word), ("p", position), ("t", segment), ("g", scale), ("b", shift)]
    sources = ["i", "s", "w", "p", "t", "g", "b", "m"]
    nodes = [("com.microsoft.EmbedLayerNormalization", sources, ["y", "n", "e"], {"epsilon": 1e-5})]
    sums = word[ids] + position[:4] + segment[segments]
    outputs = [normalized(sums, scale, shift), mask.sum(1).astype("int32"), sums]
    case("EmbedLayerNormalization", nodes, {"i": ids, "s": segments, "m": mask}, outputs, constants)
    places = random.randint(0, 6, (2, 4)).astype("int32")
    sources = ["i", "", "w", "p", "", "g", "b", "", "o"]
    nodes = [("com.microsoft.EmbedLayerNormalization", sources, ["y", "n"], {"epsilon": 1e-5})]
    outputs = [normalized(word[ids] + position[places], scale, shift), numpy.zeros(2, "int32")]
    case("EmbedLayerNormalization of positions", nodes, {"i": ids, "o": places}, outputs, constants)


def sequences():
    x = reals(7, 3)
    nodes = [
        ("SplitToSequence", ["x", "two"], ["parts"], {}),
        ("SequenceLength", ["parts"], ["out0"], {}),
        ("SequenceAt", ["parts", "last"], ["out1"], {}),
        ("SequenceErase", ["parts", "last"], ["shorter"], {}),
        ("SequenceInsert", ["shorter", "out1", "first"], ["longer"], {}),
        ("ConcatFromSequence", ["longer"], ["out2"], {"axis": 0}),
        ("SequenceConstruct", ["x", "x"], ["twice"], {}),
        ("ConcatFromSequence", ["twice"], ["out3"], {"axis": -1, "new_axis": 1}),
        ("SplitToSequence", ["x"], ["rows"], {"axis": 1, "keepdims": 0}),
        ("SequenceAt", ["rows", "first"], ["out4"], {}),
    ]
    outputs = [numpy.array(4, "int64"), x[6:], numpy.concatenate([x[6:], x[:6]]), numpy.stack([x, x], -1), x[:, 0]]
    constants = [("two", numpy.array(2, "int64")), ("last", numpy.array(-1, "int64")), ("first", numpy.array(0, "int64"))]
    case("sequences", nodes, {"x": x}, outputs, constants, opset=13)


def unfold():
    """Windows of 4 elements, 2 apart, as PyTorch's exporter writes Tensor.unfold: a loop that adds to a sequence."""
    x = reals(3, 10)
    info = helper.make_tensor_value_info
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["i", "two"], ["start"]),
            helper.make_node("Add", ["start", "four"], ["end"]),
            helper.make_node("Unsqueeze", ["start", "zero"], ["starts"]),
            helper.make_node("Unsqueeze", ["end", "zero"], ["ends"]),
            helper.make_node("Slice", ["x", "starts", "ends", "one"], ["window"]),
            helper.make_node("SequenceInsert", ["before", "window"], ["after"]),
            helper.make_node("Identity", ["going"], ["goes"]),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), sequence("before", TensorProto.FLOAT, None)],
        [info("goes", TensorProto.BOOL, []), sequence("after", TensorProto.FLOAT, None)],
    )
    nodes = [
        ("SequenceEmpty", [], ["none"], {"dtype": TensorProto.FLOAT}),
        ("Loop", ["count", "true", "none"], ["windows"], {"body": body}),
        ("ConcatFromSequence", ["windows"], ["stacked"], {"axis": 0, "new_axis": 1}),
        ("Transpose", ["stacked"], ["y"], {"perm": [1, 0, 2]}),
    ]
    constants = [("count", numpy.array(4, "int64")), ("true", numpy.array(True))]
    constants += [(n, numpy.array(v, "int64")) for n, v in (("two", 2), ("four", 4))]
    constants += [("zero", numpy.array([0], "int64")), ("one", numpy.array([1], "int64"))]
    y = numpy.stack([x[:, 2 * i : 2 * i + 4] for i in range(4)], 1)
    case("unfold", nodes, {"x": x}, [y], constants, opset=13)


def einsums():
    shapes = {
        "bhnd,bhne,bhd->bhe": ((2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 5)),
        "ij,jk,kl,lm->im": ((3, 4), (4, 2), (2, 5), (5, 3)),
        "i,j,k->kij": ((2,), (3,), (4,)),
        "...ij,...jk->...ik": ((2, 3, 4), (5, 1, 4, 2)),
        "...i,...i": ((2, 3, 4), (3, 4)),
        "...ii->...i": ((2, 3, 4, 4),),
        "ii": ((4, 4),),
        "aba,b->ab": ((3, 2, 3), (2,)),
        "b...d->...b": ((2, 3, 4, 5),),
    }
    for equation, dims in shapes.items():
        arrays = [reals(*d) for d in dims]
        y = numpy.asarray(numpy.einsum(equation, *arrays), "float32")
        names = [f"x{i}" for i in range(len(arrays))]
        case(f"Einsum {equation}", [("Einsum", names, ["y"], {"equation": equation})], dict(zip(names, arrays)), [y], opset=12)


def short_time_transforms():
    """A signal without a dimension for its parts, as PyTorch's exporter writes it."""
    x, window = reals(2, 32), numpy.hanning(8).astype("float32")
    frames = numpy.stack([x[:, s : s + 8] * window for s in range(0, 25, 4)], 1)
    y = numpy.fft.rfft(frames)
    y = numpy.stack([y.real, y.imag], -1).astype("float32")
    constants = [("step", numpy.array(4, "int64")), ("window", window), ("length", numpy.array(8, "int64"))]
    nodes = [("STFT", ["x", "step", "window", "length"], ["y"], {"onesided": 1})]
    case("STFT of a matrix", nodes, {"x": x}, [y], constants, opset=17)


def models():
    for write in (
        weights_of_few_bits,
        blocks_of_computed_numbers,
        activations_of_16_bits,
        products_of_few_bits,
        attention_with_masks_and_past,
        attention_of_heads_with_past,
        embeddings,
        sequences,
        unfold,
        einsums,
        short_time_transforms,
    ):
        write()
    return CASES
