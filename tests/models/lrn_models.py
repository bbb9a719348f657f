# SPDX-License-Identifier: Apache-2.0
"""GoogLeNet and AlexNet as their papers have them, with local response normalisation, which torchvision's leave out.

Szegedy et al., "Going deeper with convolutions", 2014, without the auxiliary classifiers; Krizhevsky et al., "ImageNet
classification with deep convolutional neural networks", 2012, whose two GPUs are convolutions of two groups.
"""

import torch
from torch import nn


class _Lrn(torch.autograd.Function):
    @staticmethod
    def forward(_, x, size, alpha, beta, k):
        return nn.functional.local_response_norm(x, size, alpha, beta, k)

    @staticmethod
    def symbolic(g, x, size, alpha, beta, k):
        return g.op("LRN", x, size_i=size, alpha_f=alpha, beta_f=beta, bias_f=k)


class Lrn(nn.Module):
    """torch's normalisation, exported as ONNX's one operator in the place of the dozen that torch writes."""

    def __init__(self, size, alpha, beta, k):
        super().__init__()
        self.arguments = (size, alpha, beta, k)

    def forward(self, x):
        return _Lrn.apply(x, *self.arguments)


def conv_relu(inputs, outputs, kernel, **options):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **options), nn.ReLU(inplace=True))


class Inception(nn.Module):
    def __init__(self, inputs, ch1x1, ch3x3_reduce, ch3x3, ch5x5_reduce, ch5x5, pool):
        super().__init__()
        self.branches = nn.ModuleList([
            conv_relu(inputs, ch1x1, 1),
            nn.Sequential(conv_relu(inputs, ch3x3_reduce, 1), conv_relu(ch3x3_reduce, ch3x3, 3, padding=1)),
            nn.Sequential(conv_relu(inputs, ch5x5_reduce, 1), conv_relu(ch5x5_reduce, ch5x5, 5, padding=2)),
            nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), conv_relu(inputs, pool, 1)),
        ])

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet_lrn():
    def pool():
        return nn.MaxPool2d(3, stride=2, ceil_mode=True)

    def norm():
        return Lrn(5, 1e-2, 0.75, 1.0)

    return nn.Sequential(
        conv_relu(3, 64, 7, stride=2, padding=3), pool(), norm(),
        conv_relu(64, 64, 1), conv_relu(64, 192, 3, padding=1), norm(), pool(),
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), pool(),
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), pool(),
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AvgPool2d(7, stride=1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000), nn.Softmax(1))


def alexnet_lrn():
    def norm():
        return Lrn(5, 1e-2, 0.75, 2.0)

    return nn.Sequential(
        conv_relu(3, 96, 11, stride=4, padding=2), norm(), nn.MaxPool2d(3, stride=2),
        conv_relu(96, 256, 5, padding=2, groups=2), norm(), nn.MaxPool2d(3, stride=2),
        conv_relu(256, 384, 3, padding=1), conv_relu(384, 384, 3, padding=1, groups=2),
        conv_relu(384, 256, 3, padding=1, groups=2), nn.MaxPool2d(3, stride=2), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(9216, 4096), nn.ReLU(inplace=True),
        nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000))
