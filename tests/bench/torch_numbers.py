#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of torch that tests hold the engine to, computed anew in double: 100 steps of each optimizer
(tests/engine/training/optimizer_test.cc), losses and their gradients (tests/engine/primitives/loss/loss_test.cc) and
five updates of the built-in model (tests/engine/facade/digits_training_test.cc). Prints them, and what the tests have
where that is another number. Exit status 0 if they are the same.

Needs Debian's python3-torch and python3-onnx.

  tests/bench/torch_numbers.py
"""

import math
import pathlib
import re
import sys

import digits_from_scratch
import numpy
import onnx
import onnx.numpy_helper
import torch

TESTS = pathlib.Path(__file__).resolve().parents[1] / "engine"
DIGITS = digits_from_scratch.DIGITS
WEIGHTS = [0.5, 2, 1, 0.25]
LABELS = [2, 0, 3]
DISTRIBUTIONS = [.1, .2, .3, .4, 0, 1, 0, 0, .25, .25, .25, .25]


def double(values, *shape):
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


# As optimizer_test.cc makes them.
def gradient_at(step):
    return double([((i * 7 + step * 13) % 17 - 8) / 8 for i in range(5)], 5)


def optimizers():
    """After 100 steps, by the words of the test's cases."""
    sgd, adam = torch.optim.SGD, torch.optim.Adam
    cases = {
        "plain": (sgd, {"lr": 0.05}),
        "decay": (sgd, {"lr": 0.05, "weight_decay": 0.1}),
        "momentum": (sgd, {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01}),
        "dampening": (sgd, {"lr": 0.01, "momentum": 0.9, "dampening": 0.3}),
        "nesterov": (sgd, {"lr": 0.01, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
        "adam": (adam, {"lr": 0.01}),
        "adam with everything": (adam, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
        "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
        "clipped by the norm of five elements": (sgd, {"lr": 0.05}),
    }
    for why, (kind, options) in cases.items():
        w = torch.nn.Parameter(double([(i % 5 * 5 % 7 - 3) / 4 for i in range(5)], 5))
        optimizer = kind([w], **options)
        for step in range(100):
            w.grad = gradient_at(step)
            if why.startswith("clipped"):
                torch.nn.utils.clip_grad_norm_([w], 0.75)
            optimizer.step()
        yield why, w.tolist()


# As loss_test.cc makes them.
def logits(*shape):
    return double([(i * 37 % 101 - 50) / 16 for i in range(math.prod(shape))], *shape).requires_grad_()


def tenths(*shape):
    return double([i * 13 % 11 / 10 for i in range(math.prod(shape))], *shape)


def losses():
    """The loss and the first six numbers of its gradient, by the words of the test's cases."""
    of = torch.nn.functional
    weights, labels = double(WEIGHTS, 4), torch.tensor(LABELS)
    shares = double(DISTRIBUTIONS, 3, 4)
    entropy = lambda target, **options: lambda x: of.cross_entropy(x, target, **options)
    cases = {
        "mean": ((3, 4), entropy(labels)),
        "sum": ((3, 4), entropy(labels, reduction="sum")),
        "weights": ((3, 4), entropy(labels, weight=weights)),
        "smoothing": ((3, 4), entropy(labels, label_smoothing=0.1)),
        "smoothing and weights": ((3, 4), entropy(labels, label_smoothing=0.1, weight=weights)),
        "ignored": ((3, 4), entropy(labels, ignore_index=0)),
        "all three": ((3, 4), entropy(labels, label_smoothing=0.1, ignore_index=0, weight=weights)),
        "probabilities": ((3, 4), entropy(shares)),
        "weighted probabilities": ((3, 4), entropy(shares, label_smoothing=0.1, weight=weights)),
        "images": ((2, 4, 2, 2), entropy(torch.tensor([0, 1, 2, 3, 3, 3, 1, -100]).reshape(2, 2, 2), weight=weights)),
        "binary": ((3, 4), lambda x: of.binary_cross_entropy_with_logits(x, tenths(3, 4))),
        "binary, weighted": ((3, 4), lambda x: of.binary_cross_entropy_with_logits(x, tenths(3, 4), weight=weights)),
        "binary of images, weighted": ((2, 4, 2, 2), lambda x: of.binary_cross_entropy_with_logits(
            x, tenths(2, 4, 2, 2), weight=weights.reshape(4, 1, 1))),
        "squares": ((3, 4), lambda x: of.mse_loss(x, tenths(3, 4))),
        "huber": ((3, 4), lambda x: of.huber_loss(x, tenths(3, 4), delta=0.75)),
    }
    for why, (shape, function) in cases.items():
        x = logits(*shape)
        loss = function(x)
        loss.backward()
        yield why, [loss.item()] + x.grad.flatten()[:6].tolist()


# As digits_training_test.cc makes them.
def untrained():
    """The built-in model with other weights, in training, and in double."""
    model, ones, seed, values = onnx.load(str(DIGITS / "1/model.onnx")), set(), 1, {}
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            ones |= {node.input[1], node.input[4]}
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        array = numpy.full(list(tensor.dims), 1 if tensor.name in ones else 0, numpy.float32)
        if len(tensor.dims) > 1:
            bound = numpy.float32(math.sqrt(numpy.float32(3) / numpy.float32(array.size // tensor.dims[0])))
            array, seed = uniform(array.size, bound, seed).reshape(array.shape), seed + 1
        values[tensor.name] = torch.tensor(array, dtype=torch.float64)
    network = digits_from_scratch.recipe().Digits().double().train()
    missing = network.load_state_dict(values, strict=False).missing_keys
    if [name for name in missing if not name.endswith("num_batches_tracked")]:
        sys.exit(f"the model's file lacks {missing}")
    return network


def uniform(count, bound, seed):
    numbers = []
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) % 2 ** 32
        numbers.append((numpy.float32(seed >> 8) / numpy.float32(8388608) - numpy.float32(1)) * bound)
    return numpy.array(numbers, numpy.float32)


def updates():
    """The losses of five updates, and of what follows for inference."""
    images = numpy.fromfile(DIGITS / "heldout/images.u8", numpy.uint8).reshape(-1, 3, 24, 20)
    images = images.astype(numpy.float32) / 255
    labels = torch.tensor(numpy.fromfile(DIGITS / "heldout/labels.u8", numpy.uint8).astype(numpy.int64))
    images = torch.tensor(images, dtype=torch.float64)
    network = untrained()
    groups = [{"params": [p for p in network.parameters() if p.dim() > 1], "weight_decay": 5e-4},
              {"params": [p for p in network.parameters() if p.dim() <= 1]}]
    optimizer = torch.optim.SGD(groups, lr=0.005, momentum=0.9, nesterov=True)
    loss = lambda part: torch.nn.functional.cross_entropy(network(images[part])[0], labels[part])
    found = []
    for update in range(5):
        for group in optimizer.param_groups:
            group["lr"] = 0.0025 * (1 + math.cos(math.pi * update / 72))
        optimizer.zero_grad()
        found.append(loss(slice(48 * update, 48 * update + 48)))
        found[-1].backward()
        optimizer.step()
    network.eval()
    return [one.item() for one in found] + [loss(slice(288, 360)).item()]


def numbers_in(text):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


def same(name, found, declared, digits=9):
    """Prints the numbers, and says whether the test has them."""
    agree = len(found) == len(declared) and all(
        abs(a - b) <= 10.0 ** -digits * max(1, abs(a)) for a, b in zip(found, declared))
    print(f"{name}: {', '.join(f'{number:.10g}' for number in found)}"
          + ("" if agree else f"\n  the test has {declared}"))
    return agree


def case_of(text, why, opening):
    """The test's file from a case on, in the function or test named `opening`."""
    return text[text.index(f'"{why}"', text.index(opening)):]


def main():
    good = True
    text = (TESTS / "training/optimizer_test.cc").read_text()
    for why, found in optimizers():
        rest = case_of(text, why, "OptimizerCases")
        last = next(group for group in re.findall(r"\{([^{}]*)\}", rest) if len(numbers_in(group)) == 5
                    and "=" not in group)
        good &= same(f"optimizer, {why}", found, numbers_in(last))
    text = (TESTS / "primitives/loss/loss_test.cc").read_text()
    for why, found in losses():
        rest = case_of(text, why, "NumbersOfTorch")
        loss, gradient = re.search(r"\},\s*([\d.]+),\s*\{([^{}]*)\}\}", rest).groups()
        good &= same(f"loss, {why}", found, numbers_in(loss) + numbers_in(gradient))
    text = (TESTS / "facade/digits_training_test.cc").read_text()
    listed = numbers_in(re.search(r"double loss : \{([^}]*)\}", text).group(1))
    listed += numbers_in(re.search(r"evaluation\.loss, ([\d.]+)", text).group(1))
    good &= same("the built-in model", updates(), listed)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
