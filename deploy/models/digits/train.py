#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the built-in model and writes everything that lies beside this file.

Scikit-learn's 1,797 handwritten digits (8x8, grey) are split once, by a fixed seed, into 1,437 for
training and 360 held out. Each is enlarged to 16x16, placed in a 24x20 picture and drawn in a
random colour on a random background, so that channels matter and height is not width. Training
draws every digit anew in each epoch; the held-out pictures are drawn once, rounded to bytes and
written to heldout/, and the accuracy printed is computed on exactly those bytes divided by 255.

  /usr/bin/python3 deploy/models/digits/train.py     # about two minutes; the same file every time

Needs Debian's python3-torch, python3-sklearn and python3-onnx.
"""
import argparse
import pathlib

import numpy
import onnx
import sklearn.datasets
import torch
from torch import nn
from torch.nn import functional

SEED = 20191
HELD_OUT = 360
HEIGHT, WIDTH, INK = 24, 20, 16
EPOCHS, BATCH = 64, 48


def shuffle(x, groups, c, h, w):
    """Channel shuffle as torch models write it: exported as Reshape, Transpose, Reshape.

    The sizes are given as numbers: read from x they would become a chain of nodes each.
    """
    x = x.view(-1, groups, c // groups, h, w).transpose(1, 2).contiguous()
    return x.view(-1, c, h, w)


def conv(c_in, c_out, size, stride=1, groups=1):
    """Convolution that keeps the size (at stride 1), with batch norm and no bias."""
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(c_out))


class Residual(nn.Module):
    """y = relu(x + conv(relu(conv(x))))"""

    def __init__(self, channels):
        super().__init__()
        self.first = conv(channels, channels, 3)
        self.second = conv(channels, channels, 3)

    def forward(self, x):
        return functional.relu(x + self.second(functional.relu(self.first(x))))


class ShuffleUnit(nn.Module):
    """Grouped 1x1, shuffle, depthwise 3x3, grouped 1x1 (ShuffleNet, Zhang et al. 2018, figure 2).

    At stride 1 the input is added; at stride 2 it is average-pooled and concatenated.
    """

    def __init__(self, c_in, c_out, stride, groups, size_in):
        super().__init__()
        self.stride, self.groups, self.size_in = stride, groups, size_in
        branch = c_out if stride == 1 else c_out - c_in
        self.middle = middle = 2 * branch
        self.expand = conv(c_in, middle, 1, groups=groups)
        self.depthwise = conv(middle, middle, 3, stride, groups=middle)
        self.project = conv(middle, branch, 1, groups=groups)

    def forward(self, x):
        y = shuffle(functional.relu(self.expand(x)), self.groups, self.middle, *self.size_in)
        y = self.project(self.depthwise(y))
        if self.stride == 1:
            return functional.relu(x + y)
        x = functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        return functional.relu(torch.cat([x, y], 1))


class Digits(nn.Module):
    """[N,3,24,20] in [0,1] -> logits [N,10], features [N,40,6,5]."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 24, 3)
        self.residual = Residual(24)
        self.down = ShuffleUnit(24, 40, 2, 4, (12, 10))
        self.same = ShuffleUnit(40, 40, 1, 4, (6, 5))
        self.head = conv(40, 72, 3)
        self.classify = nn.Linear(72, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.stem(x)), 2)
        features = self.same(self.down(self.residual(x)))
        x = functional.relu(self.head(features))
        x = torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1)
        return self.classify(x), features


def draw(digits, generator):
    """digits [N,8,8] in [0,1] -> pictures [N,3,24,20] in [0,1], coloured and placed at random."""
    n = len(digits)
    ink = functional.interpolate(digits[:, None], size=(INK, INK), mode='bilinear',
                                 align_corners=False)
    top = torch.randint(0, HEIGHT - INK + 1, (n,), generator=generator)
    left = torch.randint(0, WIDTH - INK + 1, (n,), generator=generator)
    mask = torch.zeros(n, 1, HEIGHT, WIDTH)
    for i in range(n):
        mask[i, :, top[i]:top[i] + INK, left[i]:left[i] + INK] = ink[i]
    paper = torch.rand(n, 3, 1, 1, generator=generator)
    # Every channel of the ink stands at least 0.3 away from the paper, above or below it.
    step = 0.3 + 0.4 * torch.rand(n, 3, 1, 1, generator=generator)
    up = torch.rand(n, 3, 1, 1, generator=generator) < 0.5
    up = torch.where(paper < 0.3, torch.ones_like(up), up & (paper < 0.7))
    pen = torch.where(up, paper + step, paper - step)
    noise = 0.03 * torch.randn(n, 3, HEIGHT, WIDTH, generator=generator)
    return (paper + mask * (pen - paper) + noise).clamp(0, 1)


def train(model, digits, labels, generator):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = EPOCHS * (len(digits) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        model.train()
        order = torch.randperm(len(digits), generator=generator)
        pictures, total = draw(digits, generator), 0.0
        for start in range(0, len(digits) - BATCH + 1, BATCH):
            rows = order[start:start + BATCH]
            loss = functional.cross_entropy(model(pictures[rows])[0], labels[rows],
                                            label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f'epoch {epoch + 1:2d}/{EPOCHS}  loss {total / (len(digits) // BATCH):.4f}',
              flush=True)


def export(model, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        model, torch.zeros(1, 3, HEIGHT, WIDTH), str(path), opset_version=13,
        # PRESERVE keeps the batch norms as nodes: folding them is the server's work.
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        input_names=['image'], output_names=['logits', 'features'],
        dynamic_axes={name: {0: 'N'} for name in ('image', 'logits', 'features')})
    tidy(path)


def tidy(path):
    """Turns Constant nodes into initializers and states the whole shape of `features`."""
    model = onnx.load(str(path))
    for node in [node for node in model.graph.node if node.op_type == 'Constant']:
        value = node.attribute[0].t
        value.name = node.output[0]
        model.graph.initializer.append(value)
        model.graph.node.remove(node)
    features = model.graph.output[1].type.tensor_type.shape.dim
    features[2].dim_value, features[3].dim_value = HEIGHT // 4, WIDTH // 4
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))


def write_held_out(folder, pictures, labels, logits):
    folder.mkdir(exist_ok=True)
    (folder / 'images.u8').write_bytes(pictures.numpy().tobytes())
    (folder / 'labels.u8').write_bytes(labels.numpy().astype(numpy.uint8).tobytes())
    (folder / 'logits.f32').write_bytes(logits.numpy().astype('<f4').tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, default=pathlib.Path(__file__).parent,
                        help='where 1/model.onnx, labels.txt and heldout/ are written')
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    torch.set_num_threads(1)  # the order of additions, and so every bit, stays the same
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    source = sklearn.datasets.load_digits()
    digits = torch.tensor(source.images / 16.0, dtype=torch.float32)
    labels = torch.tensor(source.target)
    order = torch.randperm(len(digits), generator=generator)
    held, kept = order[:HELD_OUT], order[HELD_OUT:]
    held_pictures = (draw(digits[held], generator) * 255).round().to(torch.uint8)

    model = Digits()
    train(model, digits[kept], labels[kept], generator)
    model.eval()
    with torch.no_grad():
        logits, _ = model(held_pictures.float() / 255)
    right = int((logits.argmax(1) == labels[held]).sum())
    export(model, out / '1' / 'model.onnx')
    (out / 'labels.txt').write_text(''.join(f'{digit}\n' for digit in range(10)))
    write_held_out(out / 'heldout', held_pictures, labels[held], logits)
    # Rounded down, so that it can be asked for as a minimum.
    (out / 'accuracy.txt').write_text(f'{right * 10000 // HELD_OUT / 10000:.4f}\n')
    print(f'held-out accuracy {right / HELD_OUT:.4f} ({right} of {HELD_OUT})')


if __name__ == '__main__':
    main()
