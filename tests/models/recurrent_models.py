# SPDX-License-Identifier: Apache-2.0
"""Recognisers of text, as small networks for lines of it are built: convolutions until a line is one pixel high, then
two bidirectional recurrent layers over its columns, then the scores of each column's characters.

Shi et al., "An end-to-end trainable neural network for image-based sequence recognition", 2015, made smaller.
"""

from torch import nn

STATES = 256
CHARACTERS = 37


class TextRecogniser(nn.Module):
    def __init__(self, layer):
        super().__init__()
        blocks, inputs = [], 3
        for outputs, pool in [(32, (2, 2)), (64, (2, 1)), (128, (2, 1)), (128, (2, 1)), (256, (2, 1)), (256, (2, 1))]:
            blocks += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(pool)]
            inputs = outputs
        self.columns = nn.Sequential(*blocks)
        self.layers = layer(inputs, STATES, num_layers=2, bidirectional=True)
        self.scores = nn.Linear(2 * STATES, CHARACTERS)

    def forward(self, image):
        steps, _ = self.layers(self.columns(image).squeeze(2).permute(2, 0, 1))
        return self.scores(steps).permute(1, 0, 2)


def text_recogniser():
    return TextRecogniser(nn.LSTM)


def text_recogniser_gru():
    return TextRecogniser(nn.GRU)
