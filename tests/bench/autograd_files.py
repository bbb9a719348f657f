#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients through operators of files against torch.autograd in f64: small networks whose first and last operations
have parameters and whose middle is one function, exported to ONNX and trained by one update of `tilewire train`.
The gradient is what an update of SGD with a huge rate takes from a parameter, over the rate. For each function the
largest difference of an element, over the root mean square of the gradient; gradients that are zero but for rounding
are left out.

Exit status 0 if none is above --limit times torch's own error in f32, or above --floor. Needs Debian's python3-torch
and python3-onnx.

  bazel build //client:tilewire
  tests/bench/autograd_files.py
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
import training_gradients

OF = torch.nn.functional
SHAPE = (4, 6, 8, 8)


class Around(torch.nn.Module):
    """last * function(first * x + shift), and what the function has of parameters."""

    def __init__(self, function, made=None):
        super().__init__()
        self.function, self.made = function, made
        self.first = torch.nn.Parameter(torch.rand(SHAPE[1], 1, 1) + 0.5)
        self.shift = torch.nn.Parameter(torch.rand(SHAPE[1], 1, 1) - 0.5)
        with torch.no_grad():
            self.last = torch.nn.Parameter(torch.rand(self.middle(torch.rand(SHAPE)).flatten(1).shape[1]) + 0.5)

    def middle(self, x):
        x = self.first * x + self.shift
        return self.function(x, self.made) if self.made is not None else self.function(x)

    def forward(self, x):
        return self.last * self.middle(x).flatten(1)


class Numbers(torch.nn.Module):
    """Parameters alone."""

    def __init__(self, *shape):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(*shape) * 0.5)


def attention(x):
    rows = x.flatten(2)
    return (rows @ rows.transpose(1, 2) * 0.125).softmax(-1) @ rows


def functions():
    rows = torch.tensor([3, 0, 1, 3, 5])
    return {
        "prelu": Around(lambda x, of: of(x), torch.nn.PReLU(SHAPE[1])),
        "embedding": Around(lambda x, of: x[:, :5].mean(3) * of.w[rows], Numbers(7, 8)),
        "rows that are taken": Around(lambda x: x[:, rows]),
        "top_k": Around(lambda x: x.topk(3, 2)[0]),
        "the smallest": Around(lambda x: x.flatten(1).topk(5, 1, largest=False)[0]),
        "where": Around(lambda x: torch.where(x > 0.25, x * x, -x)),
        "bicubic": Around(lambda x: OF.interpolate(x, scale_factor=1.5, mode="bicubic", align_corners=False)),
        "corners aligned": Around(lambda x: OF.interpolate(x, size=(13, 5), mode="bilinear", align_corners=True)),
        "attention": Around(attention),
        "layer norm": Around(lambda x, of: of(x), torch.nn.LayerNorm(8)),
        "group norm": Around(lambda x, of: of(x), torch.nn.GroupNorm(3, SHAPE[1])),
        "instance norm": Around(lambda x, of: of(x), torch.nn.InstanceNorm2d(SHAPE[1], affine=True)),
        "lrn": Around(lambda x: OF.local_response_norm(x, 5, 0.7, 0.75, 1.5)),
        "convolution": Around(lambda x, of: of(x), torch.nn.Conv2d(SHAPE[1], 9, 3, 2, 1)),
        "groups": Around(lambda x, of: of(x), torch.nn.Conv2d(SHAPE[1], 12, 3, 1, 1, groups=3)),
        "depthwise": Around(lambda x, of: of(x), torch.nn.Conv2d(SHAPE[1], SHAPE[1], 3, 1, 1, groups=SHAPE[1])),
        "deconvolution": Around(lambda x, of: of(x), torch.nn.ConvTranspose2d(SHAPE[1], 5, 4, 2, 1)),
        "deconvolution, more": Around(
            lambda x, of: OF.relu(of(x)), torch.nn.ConvTranspose2d(SHAPE[1], 17, 3, 2, 1, 1, dilation=2)),
        "deconvolution, gaps": Around(lambda x, of: of(x), torch.nn.ConvTranspose2d(SHAPE[1], 5, 2, 3, 0, 2)),
        "deconvolution, groups": Around(
            lambda x, of: of(x.repeat(1, 8, 1, 1)[:, :32]), torch.nn.ConvTranspose2d(32, 64, 3, 2, 1, groups=2)),
        "deconvolution, few of a group": Around(
            lambda x, of: of(x), torch.nn.ConvTranspose2d(SHAPE[1], 6, 3, 2, 1, groups=3)),
        "deconvolution, depthwise": Around(
            lambda x, of: of(x), torch.nn.ConvTranspose2d(SHAPE[1], SHAPE[1], 4, 2, 1, groups=SHAPE[1])),
        "deconvolution, no stride": Around(lambda x, of: of(x), torch.nn.ConvTranspose2d(SHAPE[1], 18, 3, 1, 1)),
        "deconvolution, 1D": Around(lambda x, of: of(x.flatten(2)), torch.nn.ConvTranspose1d(SHAPE[1], 7, 5, 3, 1, 2)),
        "deconvolution, 3D": Around(
            lambda x, of: of(x.unsqueeze(2)), torch.nn.ConvTranspose3d(SHAPE[1], 4, 2, (3, 2, 1), bias=False)),
        "linear": Around(lambda x, of: of(x.flatten(1)), torch.nn.Linear(SHAPE[1] * 64, 7)),
        "matrices": Around(lambda x, of: x @ of.w, Numbers(8, 5)),
        "split, concat and pad": Around(lambda x: OF.pad(torch.cat([x[:, 4:], x[:, :3] * x[:, 3:]], 1), (1, 2, 0, 1))),
        "channels shuffled": Around(lambda x: x.reshape(4, 3, 2, 64).transpose(1, 2).reshape(SHAPE) * x),
        "sum and mean": Around(lambda x: x * x.mean((2, 3), keepdim=True) + x.sum(1, keepdim=True)),
        "norm": Around(lambda x: x / x.norm(dim=3, keepdim=True)),
        "maximum and minimum": Around(lambda x: x.amax(1, keepdim=True) * x + x.amin((2, 3), keepdim=True)),
        "quotient of pairs": Around(lambda x: torch.maximum(x, x.flip(1)) / (2 + torch.minimum(x, x.flip(2)) ** 2)),
        "logsoftmax": Around(lambda x: x.log_softmax(1)),
        "maximum of windows": Around(lambda x: OF.max_pool2d(x, 3, 2, 1)),
        "average of windows": Around(lambda x: OF.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    }


def by_torch(network, x, target, kind):
    network = network.to(kind)
    network.zero_grad()
    OF.mse_loss(network(x.to(kind)), target.to(kind)).backward()
    return {name: value.grad.double().numpy().copy() for name, value in network.named_parameters()}


def by_tool(flags, folder, x, target):
    """The gradients, or why there are none."""
    numpy.save(folder / "images.npy", x.numpy())
    numpy.save(folder / "labels.npy", target.numpy())
    command = [flags.tool, "train", folder / "model.onnx", f"--images={folder}/images.npy", "--loss=mse",
               f"--labels={folder}/labels.npy", f"--batch={len(x)}", "--epochs=1",
               f"--lr={training_gradients.RATE:.0f}", "-o", folder / "trained.onnx"]
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        return None, ended.stderr.splitlines()[0]
    before = training_gradients.initializers(folder / "model.onnx")
    after = training_gradients.initializers(folder / "trained.onnx")
    return {name: (value.astype(float) - after[name].astype(float)) / training_gradients.RATE
            for name, value in before.items() if value.dtype == numpy.float32}, ""


def farthest(found, right):
    return numpy.abs(found.reshape(right.shape) - right).max() / numpy.sqrt((right ** 2).mean())


def compare(name, network, flags):
    torch.manual_seed(2)
    x = torch.randn(SHAPE)
    target = torch.randn(network(x).shape)
    with tempfile.TemporaryDirectory() as there:
        folder = pathlib.Path(there)
        torch.onnx.export(network, x, str(folder / "model.onnx"), training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=13, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "N"}, "y": {0: "N"}} if flags.open else None)
        ours, reason = by_tool(flags, folder, x, target)
    if ours is None:
        print(f"{name}: {reason}", flush=True)
        return False
    single, double = (by_torch(network, x, target, kind) for kind in (torch.float32, torch.float64))
    size = {one: numpy.sqrt((right ** 2).mean()) for one, right in double.items()}
    errors = {one: (farthest(ours[one], right), farthest(single[one], right)) for one, right in double.items()
              if size[one] >= training_gradients.ZERO * max(size.values())}
    worst = max(errors, key=lambda one: errors[one][0])
    mine, theirs = errors[worst]
    good = all(a <= max(flags.limit * b, flags.floor) for a, b in errors.values())
    print(f"{mine:.1e}  {theirs:.1e} torch's  {name}: {worst}" + ("" if good else "  ABOVE"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of functions; none: all")
    parser.add_argument("--limit", type=float, default=4)
    parser.add_argument("--floor", type=float, default=2e-6)
    parser.add_argument("--open", action="store_true", help="files whose batch is open")
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    flags = parser.parse_args()
    warnings.filterwarnings("ignore")  # of the exporter
    torch.manual_seed(1)
    chosen = {name: network for name, network in functions().items() if not flags.names or name in flags.names}
    sys.exit(0 if all([compare(name, network.train(), flags) for name, network in chosen.items()]) else 1)


if __name__ == "__main__":
    main()
