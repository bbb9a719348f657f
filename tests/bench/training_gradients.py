#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of a first update against torch: for each network the relative error (L2) of the gradient of every
parameter, of `tilewire train` and of torch in f32, both against torch in f64.

The gradient is what an update of SGD with a huge rate takes from a parameter, over the rate. Parameters whose true
gradient is zero (biases before a batch normalization) are left out: there both sides are rounding alone.

A relu near 0 and a near tie of two maxima jump by rounding alone, on either side, and one jump moves the gradients of
all parameters before it by a thousandth. Errors are therefore medians over --seeds of images; --chance tells which
side has the larger ones how often. --smooth puts softplus and averages in their places, so that what is left is the
arithmetic's.
Exit status 0 if no error is above --limit times torch's own, or above --floor.

  bazel build //client:tilewire
  tests/bench/training_gradients.py digits resnet18 googlenet --images=4
"""

import argparse
import math
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
# Networks that are trained by several outputs, in torch's order: the losses of those after the first count 0.3.
HEADS = {"googlenet_heads": ["logits", "aux2", "aux1"]}
FACTOR = 0.3
JUMP = 10  # times a parameter's least error of all seeds and both sides
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


class UNet(torch.nn.Module):
    """Four scales down and up again by transposed convolutions, and scores of the mean of all pixels. With `joins` a
    U-Net, each scale beside what it was on the way down; else an autoencoder, or a GAN's generator, to an image."""

    def __init__(self, joins):
        super().__init__()
        widths, self.joins = [32, 64, 128, 256], joins
        self.down = torch.nn.ModuleList(convolved(before, after, 2) for before, after in zip([3] + widths, widths))
        self.up, self.after = torch.nn.ModuleList(), torch.nn.ModuleList()
        for before, after in zip(widths[:0:-1], widths[-2::-1]):
            if joins:
                self.up.append(torch.nn.ConvTranspose2d(before, after, 2, 2))
                self.after.append(convolved(2 * after, after, 1))
            else:
                self.up.append(torch.nn.Sequential(torch.nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False),
                                                   torch.nn.BatchNorm2d(after), torch.nn.ReLU()))
        self.last = torch.nn.ConvTranspose2d(widths[0], 16 if joins else 3, 4, 2, 1)
        self.head = torch.nn.Linear(16 if joins else 3, 1000)

    def forward(self, x):
        skipped = []
        for one in self.down:
            x = one(x)
            skipped.append(x)
        for i, one in enumerate(self.up):
            x = one(x)
            if self.joins:
                x = self.after[i](torch.cat([x, skipped[-2 - i]], 1))
        return self.head(torch.tanh(self.last(x)).mean((2, 3)))


def convolved(before, after, stride):
    return torch.nn.Sequential(torch.nn.Conv2d(before, after, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(after),
                               torch.nn.ReLU())


def made(name):
    """The network, in training: digits, the built-in model's; vit, of four small blocks; unet or autoencoder, whose
    scores are means of pixels; googlenet_heads, with its auxiliary classifiers; or one of torchvision.models."""
    torch.manual_seed(1)
    if name in ("unet", "autoencoder"):
        return UNet(joins=name == "unet").train()
    if name == "digits":
        return digits_from_scratch.recipe().Digits().train()
    if name == "vit":
        network = torchvision.models.VisionTransformer(224, 16, num_layers=4, num_heads=3, hidden_dim=192, mlp_dim=768)
        torch.nn.init.normal_(network.heads.head.weight, std=0.02)  # of zeros nothing before it has a gradient
        return without_chance(network).train()
    if name.startswith("googlenet"):
        return without_chance(torchvision.models.googlenet(aux_logits=name in HEADS, init_weights=True)).train()
    return without_chance(getattr(torchvision.models, name)()).train()


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


def torch_gradients(network, images, labels, kind, heads=1):
    network = network.to(kind)
    network.zero_grad()
    scores = network(images.to(kind))
    scores = scores[:heads] if isinstance(scores, tuple) else [scores]  # digits has a second output
    losses = [torch.nn.functional.cross_entropy(one, labels) for one in scores]
    (losses[0] + FACTOR * sum(losses[1:])).backward()
    return {name: value.grad.double().numpy().copy() for name, value in network.named_parameters()}


def write_model(network, images, path, outputs=("logits",)):
    """With the running statistics of now: the exporter runs the network, which changes them."""
    statistics = {name: value.numpy().copy() for name, value in network.named_buffers()}
    torch.onnx.export(network, images, path, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=13, input_names=["image"], output_names=list(outputs),
                      dynamic_axes={name: {0: "N"} for name in ("image", *outputs)})
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


def our_gradients(flags, folder, images, labels, outputs):
    added = [f"--add_loss={output}:cross_entropy:{FACTOR}" for output in outputs[1:]]
    train(flags, folder, images, labels, ["--epochs=1", f"--lr={RATE:.0f}", *added])
    before, after = initializers(folder / "model.onnx"), initializers(folder / "trained.onnx")
    return {name: (before[name].astype(float) - after[name].astype(float)) / RATE for name in before
            if before[name].dtype == numpy.float32}


def error(found, right):
    return numpy.linalg.norm(found - right) / numpy.linalg.norm(right)


def errors(name, flags, seed):
    """For every parameter with a gradient, ours and torch's."""
    outputs = HEADS.get(name, ["logits"])
    # GoogLeNet's heads average to 4x4 pixels, which the exporter writes of multiples alone.
    size = -(-flags.size // 64) * 64 if name in HEADS else flags.size
    shape, classes = ((3, 24, 20), 10) if name == "digits" else ((3, size, size), 1000)
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(flags.images, *shape, generator=generator)
    labels = torch.randint(0, classes, (flags.images,), generator=generator)
    network = lambda: smoothed(made(name)) if flags.smooth else made(name)
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        write_model(network(), images, str(folder / "model.onnx"), outputs)
        ours = our_gradients(flags, folder, images, labels, outputs)
    single = torch_gradients(network(), images, labels, torch.float32, len(outputs))
    double = torch_gradients(network(), images, labels, torch.float64, len(outputs))
    largest = max(numpy.sqrt((g ** 2).mean()) for g in double.values())
    return {parameter: (error(ours[parameter], right), error(single[parameter], right))
            for parameter, right in double.items() if numpy.sqrt((right ** 2).mean()) >= ZERO * largest}


def sign_test(ours, theirs):
    """How likely a coin falls as unevenly."""
    draws = ours + theirs
    tail = sum(math.comb(draws, k) for k in range(max(ours, theirs), draws + 1)) / 2 ** draws
    return min(1.0, 2 * tail)


def print_chance(parameters, mine, theirs):
    """How errors of shape (seeds, parameters) are spread: what is chance falls on either side as often. A jump of one
    decision is one of all parameters before it, so that seeds count, not errors."""
    ratios, medians = mine / theirs, numpy.median(mine, axis=0) / numpy.median(theirs, axis=0)
    means = [numpy.exp(numpy.log(side).mean(axis=1)) for side in (mine, theirs)]  # of a seed, over its parameters
    least = numpy.minimum(mine, theirs).min(axis=0)
    jumps, theirs_jumps = mine > JUMP * least, theirs > JUMP * least
    alone, theirs_alone = (jumps & ~theirs_jumps).sum(axis=0), (theirs_jumps & ~jumps).sum(axis=0)
    uneven = int(abs(alone - theirs_alone).argmax())
    squares = numpy.sqrt((mine ** 2).mean(axis=0) / (theirs ** 2).mean(axis=0))
    larger = (means[0] > means[1]).sum()
    shown = ", ".join(f"{numpy.sort(medians)[int(q * (len(medians) - 1))]:.2f}" for q in (0, 0.1, 0.5, 0.9, 1))
    print(f"  medians over {len(mine)} seeds, ours over torch's, by parameter: {shown} (least, tenth, half, nine tenths, "
          f"most); {(medians > 2).sum()} above 2, {(medians < 0.5).sum()} below 1/2; root mean squares "
          f"{numpy.exp(numpy.log(squares).mean()):.2f} (least {squares.min():.2f}, most {squares.max():.2f})\n"
          f"  of all {ratios.size} errors ours is the larger in {100 * (ratios > 1).mean():.0f} %; jumps, above {JUMP} "
          f"times the parameter's least error: ours {100 * jumps.mean():.1f} %, torch's "
          f"{100 * theirs_jumps.mean():.1f} %\n"
          f"  seeds where ours has the larger mean: {larger} of {len(mine)} (chance "
          f"{sign_test(larger, len(mine) - larger):.2f}); medians of means {numpy.median(means[0]):.1e}, "
          f"{numpy.median(means[1]):.1e}\n"
          f"  most uneven: {parameters[uneven]} jumps in {jumps[:, uneven].sum()} seeds, torch's in "
          f"{theirs_jumps[:, uneven].sum()}, alone in {alone[uneven]} and {theirs_alone[uneven]} (chance "
          f"{sign_test(alone[uneven], theirs_alone[uneven]):.2f})", flush=True)


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
    if flags.chance:
        both = numpy.array([[one[parameter] for parameter in parameters] for one in found])
        print_chance(parameters, both[:, :, 0], numpy.maximum(both[:, :, 1], 1e-12))
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
    parser.add_argument("networks", nargs="+", help="digits, vit, unet, autoencoder, googlenet_heads, or of "
                        "torchvision.models")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1, help="sets of images that errors are medians of")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--limit", type=float, default=2)
    parser.add_argument("--floor", type=float, default=1e-6)
    parser.add_argument("--smooth", action="store_true", help="without decisions that rounding may turn")
    parser.add_argument("--chance", action="store_true", help="print how errors are spread over the seeds")
    parser.add_argument("--all", action="store_true", help="print every parameter")
    compare_all(parser, compare)


if __name__ == "__main__":
    main()
