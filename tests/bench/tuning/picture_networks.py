#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks with real weights: a ResNet-8, a MobileNet-like one (depthwise, relu6) and a ViT, learned by `tilewire
train` from pictures that this script draws: 3 x 32 x 32, one of ten shapes and textures each, at any place, size, angle
and colours, beneath noise that leaves no network all of them.

Writes, in --out, NAME/1/model.onnx, its accuracy on 2,000 pictures that it has not seen into NAME/accuracy.txt, and
images.f32 and labels.u8 with --pictures further ones. The seeds of all are fixed.
Needs Debian's python3-torch and python3-onnx.

  tests/bench/tuning/picture_networks.py --out=DIR [resnet8] [mobilenet] [vit]
"""

import argparse
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

SIZE = 32
CLASSES = 10
NOISE = 0.35  # deviation at most, of colours from 0 to 1
BATCH = 32


def masks(kinds, u, v, pitch):
    """The shapes, from 0 to 1, at coordinates (u, v) in units of the shape's size; one kind per picture."""
    radius, square = numpy.hypot(u, v), numpy.maximum(abs(u), abs(v))
    inside = square < 1.3
    bands = numpy.sin(u * pitch)
    drawn = [
        radius < 1,
        (radius < 1) & (radius > 0.6),
        square < 0.88,
        (square < 0.92) & (square > 0.58),
        (v > -0.7) & (v < 0.9 - 1.8 * abs(u)),
        (numpy.minimum(abs(u), abs(v)) < 0.25) & (square < 1),
        (bands > 0) & inside,
        (bands * numpy.sin(v * pitch) > 0) & inside,
        (bands + numpy.sin(v * pitch) > 0.9) & inside,
        (numpy.sin(radius * pitch) > 0) & (radius < 1.3),
    ]
    return numpy.choose(kinds, [mask.astype(numpy.float32) for mask in drawn])


def draw(count, seed):
    """Pictures, f32 [count, 3, SIZE, SIZE] from -2 to 2, and their classes."""
    random = numpy.random.default_rng(seed)
    each = lambda low, high: random.uniform(low, high, (count, 1, 1)).astype(numpy.float32)
    kinds = random.integers(0, CLASSES, (count, 1, 1))
    y, x = numpy.mgrid[0:SIZE, 0:SIZE].astype(numpy.float32)
    size, angle = each(6, 11), each(-0.5, 0.5)
    x, y = (x - SIZE / 2 - each(-5, 5)) / size, (y - SIZE / 2 - each(-5, 5)) / size
    u, v = x * numpy.cos(angle) + y * numpy.sin(angle), y * numpy.cos(angle) - x * numpy.sin(angle)
    mask = masks(kinds, u, v, each(6, 9))[:, None]
    behind = random.uniform(0.2, 0.8, (count, 3, 1, 1)).astype(numpy.float32)
    apart = random.uniform(0.2, 0.6, (count, 3, 1, 1)) * random.choice([-1, 1], (count, 3, 1, 1))
    pictures = behind + mask * apart.astype(numpy.float32)
    pictures += random.standard_normal(pictures.shape, dtype=numpy.float32) * NOISE * each(0.2, 1)[:, None]
    return numpy.clip(pictures, 0, 1) * 4 - 2, kinds.ravel().astype(numpy.uint8)


def convolution(inputs, outputs, kernel=3, stride=1, groups=1, activation=None):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation] if activation else []))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(convolution(inputs, outputs, 3, stride, activation=nn.ReLU()),
                                  convolution(outputs, outputs))
        self.beside = nn.Identity() if stride == 1 else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        return functional.relu(self.body(x) + self.beside(x))


class Inverted(nn.Module):
    """MobileNet v2's block: wider, depthwise, narrower, with a sum where shapes permit it."""

    def __init__(self, inputs, outputs, stride, factor=4):
        super().__init__()
        wide = inputs * factor
        self.body = nn.Sequential(convolution(inputs, wide, 1, activation=nn.ReLU6()),
                                  convolution(wide, wide, 3, stride, groups=wide, activation=nn.ReLU6()),
                                  convolution(wide, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class Encoder(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.joined = nn.Linear(width, width)
        self.wider, self.narrower = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        split = lambda t: t.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
        y = self.before(x)
        query, key, value = split(self.query(y)), split(self.key(y)), split(self.value(y))
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.joined(mixed)
        return x + self.narrower(functional.gelu(self.wider(self.between(x))))


class VisionTransformer(nn.Module):
    def __init__(self, width=64, depth=4, heads=4):
        super().__init__()
        self.patches = nn.Sequential(convolution(3, 16, 3, 2, activation=nn.ReLU()),
                                     convolution(16, 32, 3, 2, activation=nn.ReLU()), nn.Conv2d(32, width, 2, 2))
        self.places = nn.Parameter(torch.randn(1, (SIZE // 8) ** 2, width) * 0.02)
        self.encoders = nn.Sequential(*[Encoder(width, heads) for _ in range(depth)])
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.classes(self.norm(self.encoders(x)).mean(1))


def ends_in(width):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def resnet8():
    return nn.Sequential(convolution(3, 16, activation=nn.ReLU()), Residual(16, 16, 1), Residual(16, 32, 2),
                         Residual(32, 64, 2), ends_in(64))


def mobilenet():
    return nn.Sequential(convolution(3, 16, 3, 2, activation=nn.ReLU6()), Inverted(16, 24, 1), Inverted(24, 24, 1),
                         Inverted(24, 40, 2), Inverted(40, 40, 1), Inverted(40, 64, 2), Inverted(64, 64, 1),
                         convolution(64, 160, 1, activation=nn.ReLU6()), ends_in(160))


# The function that makes a network, and the pictures, rounds and rate of its training.
NETWORKS = {
    "resnet8": (resnet8, 12000, 5, 4e-3),
    "mobilenet": (mobilenet, 12000, 4, 4e-3),
    "vit": (VisionTransformer, 24000, 24, 2e-3),
}


def export(network, path, mode):
    """PRESERVE keeps batch normalisations of a network that is to be trained; EVAL folds them, as users do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, torch.zeros(2, 3, SIZE, SIZE), str(path), opset_version=17, training=mode,
                          do_constant_folding=mode == torch.onnx.TrainingMode.EVAL, input_names=["image"],
                          output_names=["logits"], dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


def take_weights(network, path):
    """Into torch, from a file that `tilewire train` wrote."""
    learned = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
    network.load_state_dict({name: torch.from_numpy(learned[name].copy()) if name in learned else value
                             for name, value in network.state_dict().items()})
    return network.eval()


def accuracy(network, pictures, labels):
    with torch.no_grad():
        return sum((network(part).argmax(1) == of_part).sum().item()
                   for part, of_part in zip(pictures.split(250), labels.split(250))) / len(labels)


def learn(name, folder, tool, threads=0, count=None, rounds=None):
    """Trains a network and writes it; returns its accuracy."""
    create, usual_count, usual_rounds, rate = NETWORKS[name]
    torch.manual_seed(1)
    network = create()
    with tempfile.TemporaryDirectory() as there:
        scratch = pathlib.Path(there)
        write_pictures(scratch, count or usual_count, seed=1)
        export(network.train(), scratch / "random.onnx", torch.onnx.TrainingMode.PRESERVE)
        subprocess.run([tool, "train", scratch / "random.onnx", f"--images={scratch}/images.f32",
                        f"--labels={scratch}/labels.u8", f"--shape=3x{SIZE}x{SIZE}", f"--batch={BATCH}",
                        f"--epochs={rounds or usual_rounds}", "--seed=1", "--optimizer=adamw", f"--lr={rate}",
                        "--decay=0.02", "--schedule=cosine", "--warm_up=200", "--clip_norm=1",
                        f"--threads={threads}", "-o", scratch / "learned.onnx"], check=True, stdout=subprocess.DEVNULL)
        take_weights(network, scratch / "learned.onnx")
    pictures, labels = (torch.from_numpy(array) for array in draw(2000, 2))
    reached = accuracy(network, pictures, labels.long())
    export(network, folder / name / "1/model.onnx", torch.onnx.TrainingMode.EVAL)
    (folder / name / "accuracy.txt").write_text(f"{reached:.4f}\n")
    return reached


def write_pictures(folder, count, seed=3):
    pictures, labels = draw(count, seed)
    folder.mkdir(parents=True, exist_ok=True)
    pictures.tofile(folder / "images.f32")
    labels.tofile(folder / "labels.u8")
    return pictures, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pictures", type=int, default=4000)
    parser.add_argument("--tool", default="bazel-bin/client/tilewire")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as cores")
    flags = parser.parse_args()
    write_pictures(flags.out, flags.pictures)
    for name in flags.names:
        begin = time.monotonic()
        reached = learn(name, flags.out, flags.tool, flags.threads)
        print(f"{name}: accuracy {reached:.4f} after {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
