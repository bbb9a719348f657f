#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of a first update against torch: for each network the relative error (L2) of the gradient of every
parameter, of `tilewire train` and of torch in f32, both against torch in f64.

The gradient is what an update of SGD with a huge rate takes from a parameter, over the rate. Parameters whose true
gradient is zero (biases before a batch normalization) are left out: there both sides are rounding alone.

A relu near 0 and a near tie of two maxima jump by rounding alone, on either side, and one jump moves the gradients of
all parameters before it by a thousandth. Errors are therefore medians over --seeds of images. --smooth puts softplus
and averages in their places, so that what is left is the arithmetic's.
Exit status 0 if no error is above --limit times torch's own, or above --floor.

  bazel build //client:tilewire
  tests/bench/training_gradients.py digits resnet18 googlenet --images=4
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import digits_from_scratch
import numpy
import onnx
import onnx.numpy_helper
import torch
import torchvision

RATE = 2.0 ** 40
ZERO = 1e-9  # of the largest gradient's root mean square


def without_chance(network):
    """The network with dropout and stochastic depth taken out."""
    for module in network.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    for name, module in list(network.named_children()):
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            setattr(network, name, torch.nn.Identity())
        else:
            without_chance(module)
    return network


def made(name):
    """The network, in training: digits, the built-in model's, or one of torchvision.models."""
    torch.manual_seed(1)
    if name == "digits":
        return digits_from_scratch.recipe().Digits().train()
    options = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
    return without_chance(getattr(torchvision.models, name)(**options)).train()


def smoothed(network):
    """The network with softplus for relus and averages for maxima, which decide nothing."""
    for name, module in list(network.named_children()):
        if isinstance(module, (torch.nn.ReLU, torch.nn.ReLU6)):
            setattr(network, name, torch.nn.Softplus())
        elif isinstance(module, torch.nn.MaxPool2d):
            setattr(network, name, torch.nn.AvgPool2d(module.kernel_size, module.stride, module.padding))
        else:
            smoothed(module)
    return network


def torch_gradients(network, images, labels, kind):
    network = network.to(kind)
    network.zero_grad()
    scores = network(images.to(kind))
    scores = scores[0] if isinstance(scores, tuple) else scores  # of digits, which has a second output
    torch.nn.functional.cross_entropy(scores, labels).backward()
    return {name: value.grad.double().numpy().copy() for name, value in network.named_parameters()}


def write_model(network, images, path):
    """With the running statistics of now: the exporter runs the network, which changes them."""
    statistics = {name: value.numpy().copy() for name, value in network.named_buffers()}
    torch.onnx.export(network, images, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=13, input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}})
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.name in statistics:
            tensor.CopyFrom(onnx.numpy_helper.from_array(statistics[tensor.name], tensor.name))
    onnx.save(model, path)


def initializers(path):
    return {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}


def train(flags, folder, images, labels, options):
    """Trains folder/model.onnx to folder/trained.onnx, all images in one batch; returns what the tool prints."""
    numpy.save(folder / "images.npy", images.numpy())
    numpy.save(folder / "labels.npy", labels.numpy())
    command = [flags.tool, "train", folder / "model.onnx", f"--images={folder}/images.npy",
               f"--labels={folder}/labels.npy", f"--batch={len(labels)}", f"--threads={flags.threads}",
               "-o", folder / "trained.onnx"]
    return subprocess.run(command + options, check=True, stdout=subprocess.PIPE).stdout


def our_gradients(flags, folder, images, labels):
    train(flags, folder, images, labels, ["--epochs=1", f"--lr={RATE:.0f}"])
    before, after = initializers(folder / "model.onnx"), initializers(folder / "trained.onnx")
    return {name: (before[name].astype(float) - after[name].astype(float)) / RATE for name in before
            if before[name].dtype == numpy.float32}


def error(found, right):
    return numpy.linalg.norm(found - right) / numpy.linalg.norm(right)


def errors(name, flags, seed):
    """For every parameter with a gradient, ours and torch's."""
    shape, classes = ((3, 24, 20), 10) if name == "digits" else ((3, flags.size, flags.size), 1000)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(flags.images, *shape, generator=generator)
    labels = torch.randint(0, classes, (flags.images,), generator=generator)
    network = lambda: smoothed(made(name)) if flags.smooth else made(name)
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        write_model(network(), images, str(folder / "model.onnx"))
        ours = our_gradients(flags, folder, images, labels)
    single = torch_gradients(network(), images, labels, torch.float32)
    double = torch_gradients(network(), images, labels, torch.float64)
    largest = max(numpy.sqrt((g ** 2).mean()) for g in double.values())
    return {parameter: (error(ours[parameter], right), error(single[parameter], right))
            for parameter, right in double.items() if numpy.sqrt((right ** 2).mean()) >= ZERO * largest}


def compare(name, flags):
    found = [errors(name, flags, 2 + seed) for seed in range(flags.seeds)]
    parameters = [parameter for parameter in found[0] if all(parameter in one for one in found)]
    rows = [(parameter, *numpy.median([one[parameter] for one in found], axis=0)) for parameter in parameters]
    ratios = numpy.array([mine / max(theirs, 1e-12) for _, mine, theirs in rows])
    worst = rows[int(ratios.argmax())]
    over = [row for row in rows if not row[1] <= max(flags.limit * row[2], flags.floor)]
    print(f"{name}: {len(rows)} parameters, error of ours over torch's: geometric mean "
          f"{numpy.exp(numpy.log(ratios).mean()):.2f}, most {ratios.max():.2f} ({worst[0]}: {worst[1]:.1e} and "
          f"{worst[2]:.1e}); largest error {max(row[1] for row in rows):.1e}, torch's "
          f"{max(row[2] for row in rows):.1e}; {len(over)} above {flags.limit:g} times torch's", flush=True)
    if flags.all:
        for parameter, mine, theirs in sorted(rows, key=lambda row: -row[1] / row[2]):
            print(f"  {mine / theirs:6.2f}  {mine:.1e}  {theirs:.1e}  {parameter}")
    return not over


def compare_all(parser, compare_one):
    """Ends the process, with 0 if every network of the command line is good."""
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    flags = parser.parse_args()
    warnings.filterwarnings("ignore")  # of the exporter: counters of batch norms, which nothing here needs
    sys.exit(0 if all([compare_one(name, flags) for name in flags.networks]) else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="digits, or of torchvision.models")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1, help="sets of images that errors are medians of")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--limit", type=float, default=2)
    parser.add_argument("--floor", type=float, default=1e-6)
    parser.add_argument("--smooth", action="store_true", help="without decisions that rounding may turn")
    parser.add_argument("--all", action="store_true", help="print every parameter")
    compare_all(parser, compare)


if __name__ == "__main__":
    main()
