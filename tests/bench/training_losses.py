#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Losses of updates against torch: for each network the relative distance of `tilewire train` from torch in f64, and
of torch's own three ways in f32 (as it is, with channels last, and without oneDNN).

All updates are of one batch, by SGD with momentum. Networks are digits, simple and branch (the nets that MKL-DNN's
integration into PaddlePaddle was tested with, of 32 channels), and those of torchvision.models. Batch norms over few
pixels make a training chaotic: every side leaves the others within some updates. With --frozen they use the statistics
of the file. Exit status 0 if no loss is farther from f64 than --limit times the farthest of torch's, or than --floor.

  bazel build //client:tilewire
  tests/bench/training_losses.py digits simple branch --updates=20
  tests/bench/training_losses.py vgg11 googlenet --updates=5 --images=4
"""

import argparse
import json
import pathlib
import tempfile

import numpy
import torch
import training_gradients

MOMENTUM = 0.9
CHANNELS = 32


def convolution(inputs, kernel, bias=True, stride=1):
    return torch.nn.Conv2d(inputs, CHANNELS, kernel, stride, kernel // 2, bias=bias)


def maximum(kernel, padding):
    return torch.nn.MaxPool2d(kernel, 2, padding, ceil_mode=True)


class Simple(torch.nn.Module):
    """A convolution, an average, a normalization, a maximum and two products, one after the other."""

    def __init__(self):
        super().__init__()
        self.first, self.second = convolution(CHANNELS, 3), convolution(CHANNELS, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(CHANNELS)
        self.hidden = torch.nn.Linear(CHANNELS * 64, CHANNELS, bias=False)
        self.last = torch.nn.Linear(CHANNELS, 10)

    def forward(self, x):
        x = torch.nn.functional.avg_pool2d(self.first(x).relu(), 3, 1)
        x = torch.nn.functional.max_pool2d(self.norm(self.second(x)).relu(), 3, 2, 1, ceil_mode=True)
        return self.last(self.hidden(x.flatten(1)).relu())


class Branch(torch.nn.Module):
    """Four pairs of branches: of convolutions, maxima, normalizations and products."""

    def __init__(self):
        super().__init__()
        pair = lambda: torch.nn.ModuleList([convolution(CHANNELS, 1), convolution(CHANNELS, 3)])
        norms = [torch.nn.BatchNorm2d(CHANNELS) for _ in range(3)]
        self.first, self.pairs = convolution(CHANNELS, 3), torch.nn.ModuleList([pair() for _ in range(3)])
        self.joined, self.norms = convolution(2 * CHANNELS, 3, False, 2), torch.nn.ModuleList(norms)
        self.average = torch.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)
        self.maxima = torch.nn.ModuleList([maximum(3, 0), maximum(5, 1), maximum(3, 1)])
        self.hidden = torch.nn.Linear(CHANNELS * 4, CHANNELS)
        self.products = torch.nn.ModuleList([torch.nn.Linear(CHANNELS, CHANNELS, bias=False) for _ in range(2)])
        self.last = torch.nn.Linear(CHANNELS, 10)

    def forward(self, x):
        x = self.first(x).relu()
        x = self.average((self.pairs[0][0](x).relu() + self.pairs[0][1](x).relu()).relu())
        x = torch.cat([pool(layer(x).relu()) for pool, layer in zip(self.maxima, self.pairs[1])], 1)
        x = self.norms[0](self.joined(self.maxima[2](x))).relu()
        x = sum(norm(layer(x).relu()).relu() for norm, layer in zip(self.norms[1:], self.pairs[2]))
        x = self.hidden(x.relu().flatten(1)).relu()
        return self.last(self.products[0](x) + self.products[1](x))


def made(name):
    """The network, in training, and the shape and the classes of its examples."""
    torch.manual_seed(1)
    if name in ("simple", "branch"):
        return (Simple() if name == "simple" else Branch()).train(), (CHANNELS, 16, 16), 10
    if name == "digits":
        return training_gradients.made(name), (3, 24, 20), 10
    return training_gradients.made(name), (3, 224, 224), 1000


def torch_losses(name, batch, flags, kind=torch.float32, layout=torch.contiguous_format):
    network = made(name)[0].to(kind).to(memory_format=layout)
    if flags.frozen:
        for module in network.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):  # pylint: disable=protected-access
                module.eval()
    images, labels = batch[0].to(kind).to(memory_format=layout), batch[1]
    optimizer = torch.optim.SGD(network.parameters(), lr=flags.rate, momentum=MOMENTUM)
    losses = []
    for _ in range(flags.updates):
        optimizer.zero_grad()
        scores = network(images)
        scores = scores[0] if isinstance(scores, tuple) else scores  # of digits, which has a second output
        loss = torch.nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return numpy.array(losses)


def our_losses(name, batch, flags):
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        training_gradients.write_model(made(name)[0], batch[0], str(folder / "model.onnx"))
        options = [f"--epochs={flags.updates}", f"--lr={flags.rate}", f"--momentum={MOMENTUM}", "--json"]
        options += ["--frozen_statistics"] if flags.frozen else []
        printed = training_gradients.train(flags, folder, *batch, options)
    return numpy.array(json.loads(printed)["losses"])


def compare(name, flags):
    _, shape, classes = made(name)
    generator = torch.Generator().manual_seed(2)
    batch = (torch.randn(flags.images, *shape, generator=generator),
             torch.randint(0, classes, (flags.images,), generator=generator))
    exact = torch_losses(name, batch, flags, torch.float64)
    ways = [torch_losses(name, batch, flags), torch_losses(name, batch, flags, layout=torch.channels_last)]
    with torch.backends.mkldnn.flags(enabled=False):
        ways.append(torch_losses(name, batch, flags))
    ours = numpy.abs(our_losses(name, batch, flags) / exact - 1)
    theirs = numpy.max([numpy.abs(way / exact - 1) for way in ways], axis=0)
    bounds = numpy.maximum(flags.floor, flags.limit * numpy.maximum.accumulate(theirs))
    over = int((~(ours <= bounds)).sum())  # not a number is over, too
    shown = sorted({1, 2, 5, 10, flags.updates} & set(range(1, flags.updates + 1)))
    text = ", ".join(f"{u}: {ours[u - 1]:.0e} and {theirs[u - 1]:.0e}" for u in shown)
    print(f"{name}{' with frozen statistics' if flags.frozen else ''}: {flags.updates} updates of {flags.images} images, "
          f"loss from {exact[0]:.4f} to {exact[-1]:.4f}; off f64 by (ours and torch's farthest) at update {text}; "
          f"most {ours.max():.1e} and {theirs.max():.1e}; {over} above the bound", flush=True)
    return over == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="digits, simple, branch, or of torchvision.models")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--frozen", action="store_true", help="normalize by the file's statistics")
    parser.add_argument("--limit", type=float, default=4)
    parser.add_argument("--floor", type=float, default=2e-5)
    training_gradients.compare_all(parser, compare)


if __name__ == "__main__":
    main()
