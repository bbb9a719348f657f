#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of every primitive that runs backward against torch.autograd in f64: over the wire, by the Python client.
For each case the largest difference of an element, over the root mean square of the gradient.

Exit status 0 if none is above --limit. Needs Debian's python3-torch; starts a server of its own unless one is named.

  bazel build //service:tilewire-server
  tests/bench/autograd_primitives.py
"""

import argparse
import pathlib
import sys
import tempfile

import latency_ratios
import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "client/python"))
import tilewire  # pylint: disable=wrong-import-position

OF = torch.nn.functional


class Case:
    """A primitive, its operands by the names of arguments, and the same function of torch."""

    def __init__(self, name, kind, operands, function, fields=None, reads="src", kinds=("DATA",), constants=None):
        self.name, self.kind, self.operands, self.function = name, kind, operands, function
        self.fields, self.reads, self.kinds, self.constants = fields or {}, reads, kinds, constants or {}


def desc(shape):
    return {"dims": list(shape), "type": "DATA_TYPE_F32", "tag": "any"}


def plain(shape):
    return {"dims": list(shape), "type": "DATA_TYPE_F32", "tag": "x nc ncw nchw ncdhw".split()[len(shape) - 1]}


def random(seed, *shape, low=-1.0, high=1.0):
    return numpy.random.default_rng(seed).uniform(low, high, shape).astype(numpy.float32)


def windows():
    """Convolutions and deconvolutions: src, weights as torch's convolution has them, and the window."""
    return [("1 dimension", (2, 6, 11), (8, 6, 3), 1, 2, 0, 1),
            ("2 dimensions", (2, 5, 9, 8), (7, 5, 3, 3), 1, 1, 0, 1),
            ("strided, dilated", (2, 6, 11, 12), (8, 6, 3, 2), 1, 2, 1, 2),
            ("groups", (2, 8, 7, 7), (12, 4, 3, 3), 2, 1, 0, 1),
            ("a channel per group", (2, 20, 7, 9), (20, 1, 3, 3), 20, 2, 0, 1),
            ("3 dimensions", (1, 4, 5, 4, 6), (5, 4, 2, 3, 2), 1, 1, 0, 1),
            ("1x1", (3, 17, 5, 6), (33, 17, 1, 1), 1, 1, 0, 0)]


def convolutions():
    for why, src, weights, groups, stride, dilation, pad in windows():
        rank = len(src) - 2
        convolve = getattr(OF, f"conv{rank}d")
        ours = weights if groups == 1 else (groups, weights[0] // groups, *weights[1:])
        fields = {"strides": [stride] * rank, "dilations": [dilation] * rank, "padding_left": [pad] * rank,
                  "padding_right": [pad] * rank}
        yield Case(
            f"convolution, {why}", "convolution",
            {"src": random(1, *src), "weights": random(2, *ours), "bias": random(3, weights[0])},
            lambda x, w, b, shape=weights, call=convolve, s=stride, p=pad, d=dilation, g=groups: call(
                x, w.reshape(shape), b, s, p, d + 1, g), fields, kinds=("DATA", "WEIGHTS"))
        turn = getattr(OF, f"conv_transpose{rank}d")

        def turned(x, w, b, call=turn, s=stride, p=pad, d=dilation, g=groups, shape=weights):
            # Ours are [groups, outputs, inputs, ...].
            grouped = w.reshape(g, shape[0] // g, *shape[1:]).transpose(1, 2)
            return call(x, grouped.reshape(shape[1] * g, shape[0] // g, *shape[2:]), b, s, p, 0, g, d + 1)
        yield Case(f"deconvolution, {why}", "deconvolution",
                   {"src": random(1, *src), "weights": random(2, *ours), "bias": random(3, weights[0])}, turned, fields,
                   kinds=("DATA", "WEIGHTS"))


def products():
    yield Case("inner product", "inner_product",
               {"src": random(1, 5, 33), "weights": random(2, 18, 33), "bias": random(3, 18)}, OF.linear,
               kinds=("DATA", "WEIGHTS"))
    yield Case("inner product of images", "inner_product",
               {"src": random(1, 3, 4, 5, 6), "weights": random(2, 7, 4, 5, 6), "bias": random(3, 7)},
               lambda x, w, b: OF.linear(x.flatten(1), w.flatten(1), b), kinds=("DATA", "WEIGHTS"))
    for why, left, right in (("matrices", (9, 20), (20, 17)), ("a batch", (3, 9, 20), (3, 20, 17)),
                             ("weights that all share", (3, 9, 20), (1, 20, 17)),
                             ("src that all share", (1, 9, 20), (3, 20, 17))):
        yield Case(f"matmul, {why}", "matmul", {"src": random(1, *left), "weights": random(2, *right)}, torch.matmul,
                   kinds=("DATA", "WEIGHTS"))


def poolings():
    for rank, src in ((1, (2, 5, 11)), (2, (2, 17, 8, 9)), (3, (1, 3, 5, 6, 4))):
        fields = {"kernel": [3] * rank, "strides": [2] * rank, "padding_left": [1] * rank, "padding_right": [1] * rank}
        biggest, mean = getattr(OF, f"max_pool{rank}d"), getattr(OF, f"avg_pool{rank}d")
        for algorithm, function in (
                ("MAX", lambda x, call=biggest: call(x, 3, 2, 1)),
                ("AVG_INCLUDE_PADDING", lambda x, call=mean: call(x, 3, 2, 1)),
                ("AVG_EXCLUDE_PADDING", lambda x, call=mean: call(x, 3, 2, 1, count_include_pad=False))):
            yield Case(f"pooling, {algorithm.lower()}, {rank} dimensions", "pooling", {"src": random(1, *src)},
                       function, {"algorithm": f"POOLING_{algorithm}", **fields})


def functions():
    """Functions of one element: name, alpha, beta, torch's, and whether values are positive."""
    return [
        ("relu", 0, 0, torch.relu), ("relu", 0.25, 0, lambda x: OF.leaky_relu(x, 0.25)), ("tanh", 0, 0, torch.tanh),
        ("elu", 0.5, 0, lambda x: OF.elu(x, 0.5)), ("square", 0, 0, torch.square), ("abs", 0, 0, torch.abs),
        ("sqrt", 0, 0, torch.sqrt, True), ("linear", 0.75, -2, lambda x: 0.75 * x - 2),
        ("bounded_relu", 1.5, 0, lambda x: x.clamp(0, 1.5)), ("soft_relu", 0, 0, OF.softplus),
        ("logistic", 0, 0, torch.sigmoid), ("exp", 0, 0, torch.exp),
        ("gelu", 0, 0, lambda x: OF.gelu(x, approximate="tanh")), ("clip", -0.75, 1.25, lambda x: x.clamp(-0.75, 1.25)),
        ("hard_sigmoid", 1 / 6, 0.5, OF.hardsigmoid), ("swish", 1.5, 0, lambda x: x * torch.sigmoid(1.5 * x)),
        ("hard_swish", 1 / 6, 0.5, OF.hardswish), ("gelu_erf", 0, 0, OF.gelu), ("mish", 0, 0, OF.mish),
        ("log", 0, 0, torch.log, True), ("pow", 0.5, 3, lambda x: 0.5 * x ** 3),
        ("pow", 2, -1.5, lambda x: 2 * x ** -1.5, True), ("softsign", 0, 0, OF.softsign),
        ("selu", 1.6732632423543772, 1.0507009873554805, OF.selu), ("celu", 0.75, 0, lambda x: OF.celu(x, 0.75)),
        ("thresholded_relu", 0.5, 0, lambda x: OF.threshold(x, 0.5, 0)),
        ("shrink", 0.5, 0.5, lambda x: OF.softshrink(x, 0.5)), ("shrink", 0.5, 0, lambda x: OF.hardshrink(x, 0.5)),
        ("reciprocal", 0, 0, torch.reciprocal, True), ("erf", 0, 0, torch.erf), ("negate", 0, 0, torch.neg),
        ("scaled_tanh", 1.5, 0.5, lambda x: 1.5 * torch.tanh(0.5 * x)), ("round", 0, 0, torch.round),
        ("floor", 0, 0, torch.floor), ("ceil", 0, 0, torch.ceil), ("sign", 0, 0, torch.sign),
    ]


FROM_RESULT = "relu elu bounded_relu clip tanh logistic exp sqrt soft_relu linear".split()


def elements():
    for name, alpha, beta, function, *positive in functions():
        src = random(1, 3, 17, 5, low=0.1 if positive else -3, high=3)
        op = {"op": {"algorithm": f"ELTWISE_{name.upper()}", "alpha": alpha, "beta": beta}}
        yield Case(f"eltwise, {name} {alpha:.2g} {beta:.2g}", "eltwise", {"src": src}, function, op)
        if name in FROM_RESULT:
            yield Case(f"eltwise, {name} {alpha:.2g} {beta:.2g} of dst", "eltwise", {"src": src}, function, op,
                       reads="dst")


def pairs():
    src, other = random(1, 3, 5, 7), {}
    other["alike"], other["a channel"] = random(2, 3, 5, 7, low=0.5, high=2), random(2, 1, 5, 1, low=0.5, high=2)
    for name, function in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div),
                           ("max", torch.maximum), ("min", torch.minimum)):
        for why, second in other.items():
            yield Case(f"binary, {name}, {why}", "binary", {"src": src, "src1": second}, function,
                       {"algorithm": f"BINARY_{name.upper()}"})


def norms():
    src, pair = random(1, 4, 6, 5, 3), random(2, 2, 6, low=0.5, high=1.5)
    for fuses in (False, True):
        def of_batch(x, weights, fuses=fuses):
            y = OF.batch_norm(x, None, None, weights[0], weights[1], training=True, eps=1e-3)
            return y.relu() if fuses else y
        yield Case("batch normalization" + (" and relu" if fuses else ""), "batch_normalization",
                   {"src": src, "weights": pair}, of_batch,
                   {"epsilon": 1e-3, "use_scale_shift": True, "fuse_relu": fuses}, kinds=("",))
    rows, scale = random(1, 6, 5, 19), random(2, 2, 19, low=0.5, high=1.5)
    yield Case("layer normalization", "layer_normalization", {"src": rows, "weights": scale},
               lambda x, w: OF.layer_norm(x, (19,), w[0], w[1], 1e-3), {"epsilon": 1e-3, "use_scale_shift": True},
               kinds=("",))
    fields = {"local_size": 5, "alpha": 0.7, "beta": 0.75, "k": 1.5}
    image = random(1, 2, 11, 7, 6, low=-2, high=2)
    yield Case("lrn across channels", "lrn", {"src": image}, lambda x: OF.local_response_norm(x, 5, 0.7, 0.75, 1.5),
               {"algorithm": "LRN_ACROSS_CHANNELS", **fields})
    yield Case("lrn within a channel", "lrn", {"src": image},
               lambda x: x * (1.5 + 0.7 * OF.avg_pool2d(x * x, 5, 1, 2)) ** -0.75,
               {"algorithm": "LRN_WITHIN_CHANNEL", **fields})
    for axis in (0, 1, 2):
        lines = random(1, 4, 10, 6, low=-3, high=3)
        yield Case(f"softmax along {axis}", "softmax", {"src": lines}, lambda x, a=axis: x.softmax(a), {"axis": axis})
        yield Case(f"logsoftmax along {axis}", "softmax", {"src": lines}, lambda x, a=axis: x.log_softmax(a),
                   {"axis": axis, "algorithm": "SOFTMAX_LOGSOFTMAX"})


def reductions():
    powers = lambda x: (x.abs() ** 3).sum((1,), keepdim=True)
    for name, function in (
            ("sum", lambda x: x.sum(1, keepdim=True)), ("mean", lambda x: x.mean(1, keepdim=True)),
            ("mul", lambda x: x.prod(1, keepdim=True)), ("max", lambda x: x.amax(1, keepdim=True)),
            ("min", lambda x: x.amin(1, keepdim=True)),
            ("norm_lp_max", lambda x: powers(x).clamp(min=0.25) ** (1 / 3)),
            ("norm_lp_sum", lambda x: (powers(x) + 0.25) ** (1 / 3)),
            ("norm_lp_power_p_max", lambda x: powers(x).clamp(min=0.25)),
            ("norm_lp_power_p_sum", lambda x: powers(x) + 0.25)):
        yield Case(f"reduction, {name}", "reduction", {"src": random(1, 4, 7, 5)}, function,
                   {"algorithm": f"REDUCTION_{name.upper()}", "p": 3, "eps": 0.25})


def moves():
    for src, size, mode in (((2, 3, 7), (12,), "linear"), ((2, 3, 5, 4), (9, 3), "bilinear"),
                            ((1, 2, 3, 4, 3), (5, 3, 6), "trilinear")):
        for algorithm, how in (("LINEAR", {"mode": mode, "align_corners": False}),
                               ("NEAREST", {"mode": "nearest-exact"})):
            yield Case(f"resampling, {algorithm.lower()}, {len(size)} dimensions", "resampling",
                       {"src": random(1, *src)}, lambda x, to=size, how=how: OF.interpolate(x, to, **how),
                       {"algorithm": f"RESAMPLING_{algorithm}"})
    yield Case("shuffle", "shuffle", {"src": random(1, 2, 12, 3, 3)},
               lambda x: x.reshape(2, 4, 3, 3, 3).transpose(1, 2).reshape(2, 12, 3, 3), {"axis": 1, "group_size": 3})


def slopes_and_indices():
    for why, shape in (("a channel", (1, 17, 1, 1)), ("all", (1, 1, 1, 1)), ("each", (2, 17, 5, 4))):
        yield Case(f"prelu, a slope of {why}", "prelu",
                   {"src": random(1, 2, 17, 5, 4), "weights": random(2, *shape, low=-0.5, high=1)},
                   lambda x, w: torch.where(x > 0, x, w * x), kinds=("", "DATA"))
    rows = numpy.random.default_rng(3)
    for axis, shape, picks in ((0, (50, 33), (7, 9)), (1, (3, 20, 5), (40,)), (2, (2, 3, 11), (4, 2))):
        for kind, array in (("S32", "i4"), ("S64", "i8")):
            indices = rows.integers(-shape[axis], shape[axis], picks)
            yield Case(f"gather along {axis}, indices of {kind.lower()}", "gather", {"src": random(1, *shape)},
                       lambda x, a=axis, i=indices: x[(slice(None),) * a + (torch.tensor(i),)],
                       {"axis": axis, "indices": {"dims": list(picks), "type": f"DATA_TYPE_{kind}"}},
                       kinds=("WEIGHTS",), constants={"indices": indices.astype(array)})


def described(case, shapes, prop_kind):
    """The descriptor of one propagation. `shapes` are of operands, and of dst."""
    names = {"src": "src", "weights": "weights", "bias": "bias", "dst": "dst"}
    if case.kind == "binary":
        names = {"src": "src0", "src1": "src1", "dst": "dst"}
    fields = {names[name]: desc(shape) for name, shape in shapes.items() if name in names}
    if case.kind in ("batch_normalization", "layer_normalization"):
        fields.pop("weights")
    return {case.kind: {**case.fields, **fields, "prop_kind": f"PROP_KIND_{prop_kind}"}}


def backward(case, shapes, kind):
    """The same backward, whose tensors each primitive's header says; plain, since forward was."""
    prop_kind = "BACKWARD" + (f"_{kind}" if kind else "")
    whole = described(case, shapes, prop_kind)
    fields = whole[case.kind]
    if kind == "DATA":
        fields.pop("bias", None)
    src, dst = shapes["src"], shapes["dst"]
    if case.kind in ("eltwise", "softmax", "lrn", "batch_normalization", "layer_normalization", "prelu"):
        fields.update(src=plain(src), diff_src=desc(src), diff_dst=desc(src))
        reads_dst = case.kind == "softmax" or case.reads == "dst"
        fields.pop("src" if reads_dst else "dst")
        if reads_dst:
            fields["dst"] = plain(dst)
    elif case.kind == "binary":
        fields.update(src0=plain(src), src1=plain(shapes["src1"]), dst=plain(dst), diff_src0=desc(src),
                      diff_src1=desc(shapes["src1"]), diff_dst=desc(dst))
    elif case.kind == "reduction":
        fields.update(src=plain(src), diff_src=desc(src), diff_dst=desc(dst))
    elif case.kind in ("pooling", "resampling", "shuffle"):
        fields.update(src=plain(src), dst=plain(dst))
    return whole


def by_torch(case, gradient_of):
    """dst, and the gradients by argument, in double."""
    leaves = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
              for name, value in case.operands.items()}
    result = case.function(*leaves.values())
    dy = gradient_of(tuple(result.shape))
    result.backward(torch.tensor(dy, dtype=torch.float64))
    zero = lambda leaf: numpy.zeros(tuple(leaf.shape))
    return result.detach().numpy(), dy, {
        f"diff_{name}": zero(leaf) if leaf.grad is None else leaf.grad.numpy() for name, leaf in leaves.items()}


def saved_by_forward(client, case, shapes):
    """Tensors that forward leaves for backward, and the workspace's descriptor."""
    whole = described(case, shapes, "FORWARD_TRAINING")
    if case.kind == "pooling":
        whole[case.kind].update(src=plain(shapes["src"]), dst=plain(shapes["dst"]))
    elif case.kind.endswith("normalization"):
        whole[case.kind].update(src=plain(shapes["src"]), dst=plain(shapes["src"]))
    else:
        return {}, None
    created = client.create_primitive(whole)
    workspaces = [one["desc"] for one in created["arguments"] if one["name"] == "workspace"]
    saved = client.run_primitive(whole, case.operands)
    saved.pop("dst")
    return saved, workspaces[0] if workspaces else None


def errors(client, case):
    """By argument, how far the gradient is off."""
    dst, dy, expected = by_torch(case, lambda shape: random(9, *shape))
    shapes = {name: value.shape for name, value in case.operands.items()} | {"dst": dst.shape}
    saved, workspace = saved_by_forward(client, case, shapes)
    found = {}
    for kind in case.kinds:
        whole = backward(case, shapes, kind)
        if workspace:
            whole[case.kind]["workspace"] = workspace
        given = {**case.operands, **case.constants, **saved, "dst": dst.astype(numpy.float32), "diff_dst": dy}
        taken = [one["name"] for one in client.create_primitive(whole)["arguments"] if not one["written"]]
        out = client.run_primitive(whole, {name: given[name] for name in taken if name != "scratchpad"})
        if case.kind == "gather":  # whose table counts as weights
            out = {"diff_src": out["diff_weights"]}
        for name, gradient in out.items():
            scale = numpy.sqrt((expected[name] ** 2).mean()) or 1
            found[name] = numpy.abs(gradient - expected[name]).max() / scale
    missing = set(expected) - set(found)
    if missing:
        sys.exit(f"{case.name}: no {', '.join(sorted(missing))}")
    return found


def all_cases():
    for family in (convolutions, products, poolings, elements, pairs, norms, reductions, moves, slopes_and_indices):
        yield from family()


def compare(client, flags):
    over, count, largest = [], 0, 0
    for case in all_cases():
        for name, error in errors(client, case).items():
            count, largest = count + 1, max(largest, error)
            if flags.all or not error <= flags.limit:
                print(f"{error:.1e}  {case.name}: {name}", flush=True)
            if not error <= flags.limit:
                over.append(case.name)
    print(f"{count} gradients, the largest error {largest:.1e}; {len(over)} above {flags.limit:g}")
    return not over


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=1e-5)
    parser.add_argument("--all", action="store_true", help="print every gradient")
    parser.add_argument("--address", help="HOST:PORT of a server that runs")
    parser.add_argument("--server", default="bazel-bin/service/tilewire-server")
    flags = parser.parse_args()
    if flags.address:
        with tilewire.Client(flags.address) as client:
            sys.exit(0 if compare(client, flags) else 1)
    with tempfile.TemporaryDirectory() as empty:
        process, port = latency_ratios.start_server(flags.server, empty)
        try:
            with tilewire.Client(f"127.0.0.1:{port}") as client:
                good = compare(client, flags)
        finally:
            process.terminate()
            process.wait()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
