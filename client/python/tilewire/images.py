# SPDX-License-Identifier: Apache-2.0
"""From pictures to the inputs of models, as torchvision makes them.

    prepare = tilewire.images.torchvision('resnet50')
    x = prepare('cat.jpg')                        # float32 [1, 3, 224, 224]
    result = client.infer('resnet50', x)

A picture is resized, its centre is cut out, and value = (byte / 255 - mean[c]) / std[c]. Resizing
is Pillow's, bit for bit, but numpy does it; Pillow is needed only to read files.
"""
from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tilewire.errors import InvalidArgument, NotFound
from tilewire.tensors import check_layout

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CENTRED = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

# How torchvision prepares pictures for its weights, by the name of the model, or of the model and
# its weights: the shorter side after resizing, the side of the square that is cut out.
_PRESETS = [
    (256, 224, 'bilinear', _IMAGENET,
     'alexnet densenet121 densenet161 densenet169 densenet201 googlenet mnasnet0_5 mnasnet1_0 '
     'mobilenet_v2:V1 mobilenet_v3_large:V1 mobilenet_v3_small regnet_x_16gf:V1 regnet_x_1_6gf:V1 '
     'regnet_x_32gf:V1 regnet_x_3_2gf:V1 regnet_x_400mf:V1 regnet_x_800mf:V1 regnet_x_8gf:V1 '
     'regnet_y_16gf:V1 regnet_y_1_6gf:V1 regnet_y_32gf:V1 regnet_y_3_2gf:V1 regnet_y_400mf:V1 '
     'regnet_y_800mf:V1 regnet_y_8gf:V1 resnet101:V1 resnet152:V1 resnet18 resnet34 resnet50:V1 '
     'resnext101_32x8d:V1 resnext50_32x4d:V1 shufflenet_v2_x0_5 shufflenet_v2_x1_0 squeezenet1_0 '
     'squeezenet1_1 vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn '
     'wide_resnet101_2:V1 wide_resnet50_2:V1'),
    (232, 224, 'bilinear', _IMAGENET,
     'convnext_base convnext_large mnasnet0_75 mnasnet1_3 mobilenet_v2 mobilenet_v3_large '
     'regnet_x_16gf regnet_x_1_6gf regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf '
     'regnet_x_8gf regnet_y_16gf regnet_y_1_6gf regnet_y_32gf regnet_y_3_2gf regnet_y_400mf '
     'regnet_y_800mf regnet_y_8gf resnet101 resnet152 resnet50 resnext101_32x8d resnext101_64x4d '
     'resnext50_32x4d shufflenet_v2_x1_5 shufflenet_v2_x2_0 wide_resnet101_2 wide_resnet50_2'),
    (230, 224, 'bilinear', _IMAGENET, 'convnext_small'),
    (236, 224, 'bilinear', _IMAGENET, 'convnext_tiny'),
    (256, 224, 'bicubic', _IMAGENET, 'efficientnet_b0'),
    (256, 240, 'bicubic', _IMAGENET, 'efficientnet_b1:V1'),
    (255, 240, 'bilinear', _IMAGENET, 'efficientnet_b1'),
    (288, 288, 'bicubic', _IMAGENET, 'efficientnet_b2'),
    (320, 300, 'bicubic', _IMAGENET, 'efficientnet_b3'),
    (384, 380, 'bicubic', _IMAGENET, 'efficientnet_b4'),
    (456, 456, 'bicubic', _IMAGENET, 'efficientnet_b5'),
    (528, 528, 'bicubic', _IMAGENET, 'efficientnet_b6'),
    (600, 600, 'bicubic', _IMAGENET, 'efficientnet_b7'),
    (384, 384, 'bilinear', _IMAGENET, 'efficientnet_v2_s'),
    (480, 480, 'bilinear', _IMAGENET, 'efficientnet_v2_m'),
    (480, 480, 'bicubic', _CENTRED, 'efficientnet_v2_l'),
    (342, 299, 'bilinear', _IMAGENET, 'inception_v3'),
]


@dataclasses.dataclass(frozen=True)
class Preparation:
    """How a picture becomes a row of a batch.

    Attributes:
        resize: the length of the shorter side, (height, width), or None: as it is.
        crop: the side of a square, (height, width), or None: all of it. What the picture lacks is 0.
        interpolation: 'bilinear' or 'bicubic'; averaged over the area where a picture gets smaller.
        mean, std: of the values in [0, 1], one for each channel.
    """

    resize: int | tuple[int, int] | None = None
    crop: int | tuple[int, int] | None = None
    interpolation: str = 'bilinear'
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, pictures: Any, layout: str = 'nchw') -> numpy.ndarray:
        """A batch, float32, in the layout: [N, C, H, W] or [N, H, W, C].

        Args:
            pictures: one picture or a list of them; each is a path, an image of Pillow's, or an
                array [H, W] or [H, W, C] of bytes.
            layout: 'nchw' or 'nhwc'.
        """
        check_layout(layout)
        listed = pictures if isinstance(pictures, (list, tuple)) else [pictures]
        rows = [self._row(_pixels(picture)) for picture in listed]
        if len({row.shape for row in rows}) != 1:
            raise InvalidArgument('the pictures become inputs of different sizes: give resize or crop')
        batch = numpy.stack(rows)
        return numpy.ascontiguousarray(batch.transpose(0, 3, 1, 2)) if layout == 'nchw' else batch

    def _row(self, pixels: numpy.ndarray) -> numpy.ndarray:
        if self.resize is not None:
            pixels = resize(pixels, *_size_after(self.resize, *pixels.shape[:2]),
                            self.interpolation)
        if self.crop is not None:
            pixels = centre(pixels, *_pair(self.crop))
        values = pixels.astype(numpy.float32) / numpy.float32(255)
        mean, std = (numpy.asarray(each, numpy.float32) for each in (self.mean, self.std))
        return (values - mean) / std


def torchvision(name: str) -> Preparation:
    """What torchvision does before the model of this name with its default weights. Weights may be
    named too: 'resnet50:V1' stands for IMAGENET1K_V1, 'resnet50:V2' for IMAGENET1K_V2.

    Raises:
        NotFound: no CNN of torchvision's has this name; the text lists those that do.
    """
    presets = {name: Preparation(size, crop, interpolation, *statistics)
               for size, crop, interpolation, statistics, names in _PRESETS
               for name in names.split()}
    model, _, weights = name.partition(':')
    has_two = f'{model}:V1' in presets
    if model in presets and weights in ('', 'V2' if has_two else 'V1'):
        return presets[model]
    if name in presets:
        return presets[name]
    raise NotFound(f"no preparation for '{name}'; there is one for {', '.join(presets)}")


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _size_after(wanted: int | tuple[int, int], height: int, width: int) -> tuple[int, int]:
    if not isinstance(wanted, int):
        return wanted
    if height <= width:
        return wanted, int(wanted * width / height)
    return int(wanted * height / width), wanted


def _pixels(picture: Any) -> numpy.ndarray:
    """[H, W, C] of bytes."""
    if isinstance(picture, (str, os.PathLike)):
        try:
            from PIL import Image
        except ImportError as error:
            raise InvalidArgument(f'{picture}: files are read by Pillow, which is not installed '
                                  '(python3-pil, or pip install pillow)') from error
        with Image.open(picture) as image:
            return numpy.asarray(image.convert('RGB'))
    if hasattr(picture, 'convert'):  # an image of Pillow's
        picture = picture.convert('RGB')
    pixels = numpy.asarray(picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.dtype != numpy.uint8:
        raise InvalidArgument(f'a picture is bytes [H, W, C], not {pixels.dtype}{list(pixels.shape)}')
    return pixels


def centre(pixels: numpy.ndarray, height: int, width: int) -> numpy.ndarray:
    """The middle of the picture, with zeros around it where it is smaller."""
    missing = [max(0, want - have) for want, have in zip((height, width), pixels.shape)]
    if any(missing):
        around = [(lack // 2, (lack + 1) // 2) for lack in missing]
        pixels = numpy.pad(pixels, [*around, (0, 0)])
    top = round((pixels.shape[0] - height) / 2)
    left = round((pixels.shape[1] - width) / 2)
    return pixels[top:top + height, left:left + width]


def resize(pixels: numpy.ndarray, height: int, width: int,
           interpolation: str = 'bilinear') -> numpy.ndarray:
    """The picture [H, W, C] of bytes in another size, as Pillow resizes it."""
    if interpolation not in _FILTERS:
        raise InvalidArgument(f"interpolation {interpolation!r}: expected 'bilinear' or 'bicubic'")
    if pixels.shape[1] != width:
        pixels = _resize_columns(pixels, width, interpolation)
    if pixels.shape[0] != height:
        pixels = _resize_columns(pixels.transpose(1, 0, 2), height, interpolation).transpose(1, 0, 2)
    return pixels


def _bilinear(x: numpy.ndarray) -> numpy.ndarray:
    return numpy.maximum(0.0, 1.0 - numpy.abs(x))


def _bicubic(x: numpy.ndarray) -> numpy.ndarray:
    x, a = numpy.abs(x), -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return numpy.where(x < 1, near, numpy.where(x < 2, far, 0.0))


_FILTERS: dict[str, tuple[Callable[[numpy.ndarray], numpy.ndarray], float]] = {
    'bilinear': (_bilinear, 1.0), 'bicubic': (_bicubic, 2.0)}
# Pillow computes with weights in fixed point.
_BITS = 22


def _resize_columns(pixels: numpy.ndarray, width: int, interpolation: str) -> numpy.ndarray:
    """Each row resized: output x is a weighted sum of the inputs around its place."""
    kernel, support = _FILTERS[interpolation]
    have = pixels.shape[1]
    scale = have / width
    stretch = max(scale, 1.0)
    places = (numpy.arange(width) + 0.5) * scale
    first = numpy.maximum((places - support * stretch + 0.5).astype(numpy.int64), 0)
    end = numpy.minimum((places + support * stretch + 0.5).astype(numpy.int64), have)
    taps = first[:, None] + numpy.arange(math.ceil(support * stretch) * 2 + 1)
    weights = kernel((taps - places[:, None] + 0.5) * (1.0 / stretch))
    weights = numpy.where(taps < end[:, None], weights, 0.0)
    weights /= weights.sum(1, keepdims=True)
    fixed = numpy.trunc(weights * (1 << _BITS) + numpy.copysign(0.5, weights)).astype(numpy.int64)
    sums = numpy.full((pixels.shape[0], width, pixels.shape[2]), 1 << (_BITS - 1), numpy.int64)
    for tap in range(taps.shape[1]):
        sums += pixels[:, numpy.minimum(taps[:, tap], have - 1)] * fixed[:, tap, None]
    return numpy.clip(sums >> _BITS, 0, 255).astype(numpy.uint8)
