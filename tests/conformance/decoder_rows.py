# SPDX-License-Identifier: Apache-2.0
"""As graph_rows.py: GroupQueryAttention, by a loop over sequences, heads and queries."""

import numpy

from graph_rows import case, reals

HEADS, KV_HEADS, SIZE = 4, 2, 16


def rotated(x, cos, sin, places, of_neighbours):
    """x [batch, heads, length, size]; places [batch, length]."""
    c, s = cos[places][:, None], sin[places][:, None]
    first, second = (slice(0, None, 2), slice(1, None, 2)) if of_neighbours else (slice(0, SIZE // 2), slice(SIZE // 2, None))
    result = numpy.empty_like(x)
    result[..., first] = c * x[..., first] - s * x[..., second]
    result[..., second] = s * x[..., first] + c * x[..., second]
    return result


def shares_of(scores, sink):
    """The softmax of scores and of one more, whose share is left out."""
    most = max(scores.max(), sink)
    exp = numpy.exp(scores - most)
    return exp / (exp.sum() + (numpy.exp(sink - most) if numpy.isfinite(sink) else 0))


def group_query(q, k, v, past_k, past_v, lengths, total, angles=None, bias=None, sink=None, attributes=()):
    """The outputs: the result, all keys, all values. `lengths` counts the keys of each sequence,
    the new included."""
    options = {"scale": 1 / numpy.sqrt(SIZE), "softcap": 0, "local_window_size": -1, "rotary_interleaved": 0, **dict(attributes)}
    batch, length = q.shape[:2]
    q, k, v = (x.reshape(batch, length, -1, SIZE).transpose(0, 2, 1, 3) for x in (q, k, v))
    before = [0 if length == total else n - length for n in lengths]
    if angles is not None:
        places = numpy.array([[n + i for i in range(length)] for n in before])
        q, k = (rotated(x, *angles, places, options["rotary_interleaved"]) for x in (q, k))
    if sink is None:
        sink = numpy.full(HEADS, 0 if options.get("smooth_softmax") else -numpy.inf)
    longest = max(past_k.shape[2], total)
    keys, values = (numpy.zeros((batch, KV_HEADS, longest, SIZE), "float32") for _ in range(2))
    y = numpy.zeros((batch, HEADS, length, SIZE), "float32")
    for b in range(batch):
        for all_of, past, new in ((keys, past_k, k), (values, past_v, v)):
            all_of[b, :, : past.shape[2]] = past[b]
            all_of[b, :, before[b] : before[b] + length] = new[b]
        for h in range(HEADS):
            for i in range(length):
                end = before[b] + i + 1
                start = max(0, end - options["local_window_size"]) if options["local_window_size"] > 0 else 0
                seen = slice(start, end)
                scores = keys[b, h // 2, seen] @ q[b, h, i] * options["scale"]
                if options["softcap"]:
                    scores = options["softcap"] * numpy.tanh(scores / options["softcap"])
                if bias is not None:
                    scores = scores + bias[0, h % bias.shape[1], i, seen]
                y[b, h, i] = shares_of(scores, sink[h]) @ values[b, h // 2, seen]
    return [y.transpose(0, 2, 1, 3).reshape(batch, length, -1), keys, values]


def tokens(name, batch, length, buffer, lengths, total, rotates=False, is_packed=False, **options):
    """A case of so many new tokens after what the buffer holds."""
    q, k, v = reals(batch, length, HEADS * SIZE), reals(batch, length, KV_HEADS * SIZE), reals(batch, length, KV_HEADS * SIZE)
    past = [reals(batch, KV_HEADS, buffer, SIZE) for _ in range(2)]
    bias, sink = options.pop("bias", None), options.pop("sink", None)
    angles = (reals(32, SIZE // 2), reals(32, SIZE // 2)) if rotates else None
    outputs = group_query(q, k, v, *past, lengths, total, angles, bias, sink, options)
    last = numpy.array(lengths, "int32") - 1
    inputs = {"q": numpy.concatenate([q, k, v], -1) if is_packed else q}
    if not is_packed:
        inputs.update(k=k, v=v)
    inputs.update(pk=past[0], pv=past[1], last=last)
    constants = [("total", numpy.array([total], "int32"))]
    if rotates:
        constants += [("cos", angles[0]), ("sin", angles[1])]
    extra = {"bias": bias, "sink": sink}
    constants += [(n, a) for n, a in extra.items() if a is not None]
    known = [n for n, _ in constants]
    sources = [n if n in inputs or n in known else "" for n in ("q", "k", "v", "pk", "pv", "last", "total", "cos", "sin", "", "bias", "sink")]
    attributes = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "do_rotary": int(rotates), **options}
    nodes = [("com.microsoft.GroupQueryAttention", sources, ["y", "ck", "cv"], attributes)]
    case(f"GroupQueryAttention, {name}", nodes, inputs, outputs, constants)


def group_query_attention():
    tokens("a prompt", 2, 5, 0, [5, 5], 5, rotates=True)
    tokens("a prompt of neighbours", 1, 5, 0, [5], 5, rotates=True, rotary_interleaved=1)
    tokens("a packed prompt", 1, 5, 0, [5], 5, rotates=True, is_packed=True)
    tokens("a token", 1, 1, 6, [7], 7, rotates=True)
    tokens("tokens of two sequences", 2, 1, 6, [7, 4], 7, rotates=True)
    tokens("several tokens", 1, 3, 6, [9], 9, rotates=True)
    tokens("a buffer", 1, 1, 12, [7], 7, rotates=True)
    tokens("a buffer of two sequences", 2, 1, 12, [7, 5], 7)
    tokens("a window", 1, 5, 0, [5], 5, local_window_size=2)
    tokens("a window of two sequences", 2, 1, 6, [7, 5], 7, local_window_size=3)
    tokens("a cap and a bias", 1, 5, 0, [5], 5, softcap=0.5, bias=reals(1, HEADS, 5, 5) * 3)
    tokens("a scale", 1, 1, 6, [7], 7, scale=0.7)
    tokens("sinks", 1, 5, 0, [5], 5, sink=reals(HEADS))
    tokens("a smooth softmax", 1, 5, 0, [5], 5, smooth_softmax=1)


def models():
    from graph_rows import CASES

    before = len(CASES)
    group_query_attention()
    return CASES[before:]
