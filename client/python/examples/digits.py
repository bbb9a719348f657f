# SPDX-License-Identifier: Apache-2.0
"""Classifies the held-out digits: python3 client/python/examples/digits.py [HOST:PORT]"""
import sys

import numpy
import tilewire

folder = 'deploy/models/digits/heldout/'
labels = numpy.fromfile(folder + 'labels.u8', numpy.uint8)
pictures = numpy.fromfile(folder + 'images.u8', numpy.uint8).reshape(-1, 3, 24, 20)
with tilewire.Client((sys.argv[1:] or ['127.0.0.1:8001'])[0]) as client:
    logits = client.infer('digits', (pictures / 255).astype('float32'))['logits']
print(f'{(logits.argmax(1) == labels).mean():.4f} of {len(labels)} digits are right')
