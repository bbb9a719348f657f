# SPDX-License-Identifier: Apache-2.0
"""From pictures to the inputs of models, as torchvision makes them.

    prepare = tilewire.images.torchvision('resnet50')
    x = prepare('cat.jpg')                        # float32 [1, 3, 224, 224]
    result = client.infer('resnet50', x)

A picture is resized, its centre is cut out, and value = (byte / 255 - mean[c]) / std[c]. Resizing
is Pillow's, bit for bit, but numpy does it, and only of what the cut keeps; Pillow is needed only to
read files.
"""
from __future__ import annotations

import dataclasses
import math
import numbers
import operator
from typing import Any

import numpy
from numpy.typing import NDArray

from tilewire import arguments
from tilewire.errors import InvalidArgument
from tilewire.pictures import check_size, pixels_of
from tilewire.presets import PRESETS, preset
from tilewire.resizing import FILTERS, Span, resized
from tilewire.tensors import Layout, check_layout

Size = int | tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Preparation:
    """How a picture becomes a row of a batch.

    Attributes:
        resize: the length of the shorter side, (height, width), or None: as it is.
        crop: the side of a square, (height, width), or None: all of it. What the picture lacks is 0.
        interpolation: 'bilinear' or 'bicubic'; averaged over the area where a picture gets smaller.
        mean, std: of the values in [0, 1], one for each channel.
    """

    resize: Size | None = None
    crop: Size | None = None
    interpolation: str = 'bilinear'
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        for name in ('resize', 'crop'):
            object.__setattr__(self, name, _checked_size(name, getattr(self, name)))
        if self.interpolation not in FILTERS:
            raise arguments.refused('interpolation', self.interpolation, "'bilinear' or 'bicubic'")
        for name in ('mean', 'std'):
            object.__setattr__(self, name, _checked_numbers(name, getattr(self, name)))
        if not all(self.std):
            raise arguments.refused('std', self.std, 'numbers that are not 0')

    def __call__(self, pictures: Any, layout: Layout = 'nchw') -> NDArray[Any]:
        """A batch, float32, in the layout: [N, C, H, W] or [N, H, W, C].

        Args:
            pictures: one picture or a list of them; each is a path, an image of Pillow's, or an
                array [H, W] or [H, W, C] of bytes, with 1, 3 or 4 channels, of which the fourth,
                transparency, is dropped. No picture has more than 2^26 pixels.
            layout: 'nchw' or 'nhwc'.

        Raises:
            InvalidArgument: a picture is none of these, or its file cannot be read, which may be
                because it is cut short; the pictures become inputs of different sizes.
            NotFound: there is no such file.
        """
        check_layout(layout)
        listed = pictures if isinstance(pictures, (list, tuple)) else [pictures]
        if not listed:
            raise InvalidArgument('pictures=[]: expected at least one')
        rows = [self._row(pixels_of(picture)) for picture in listed]
        for index, row in enumerate(rows):
            if row.shape != rows[0].shape:
                raise InvalidArgument(f'picture {index} becomes [H, W, C] = {list(row.shape)}, the first '
                                      f'{list(rows[0].shape)}: give resize or crop')
        batch: NDArray[Any] = numpy.stack(rows)
        return batch.transpose(0, 3, 1, 2).copy() if layout == 'nchw' else batch

    def _row(self, pixels: NDArray[Any]) -> NDArray[Any]:
        height, width = _size_after(self.resize, *pixels.shape[:2])
        wanted = (height, width) if self.crop is None else _pair(self.crop)
        check_size('the prepared picture', *wanted)
        rows, columns = _middle(height, wanted[0]), _middle(width, wanted[1])
        pixels = resized(pixels, rows, columns, self.interpolation)
        values: NDArray[Any] = _padded(pixels, *wanted).astype(numpy.float32)
        values /= numpy.float32(255)
        values = values - numpy.asarray(self.mean, numpy.float32)
        values /= numpy.asarray(self.std, numpy.float32)
        return values


def torchvision(name: str) -> Preparation:
    """The preparation that torchvision makes before the model of this name with its default
    weights. Weights may be named too: 'resnet50:V1' stands for IMAGENET1K_V1, 'resnet50:V2' for
    IMAGENET1K_V2. `names()` lists what there is.

    Raises:
        NotFound: torchvision has no such model.
    """
    found = preset(arguments.text('name', name))
    return Preparation(found.resize, found.crop, found.interpolation, *found.statistics)


def names() -> list[str]:
    """The models that `torchvision` knows; with the weights, where a model has others too."""
    return sorted(PRESETS)


def centre(pixels: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """The middle of the picture, with zeros around it where it is smaller."""
    rows, columns = _middle(pixels.shape[0], height), _middle(pixels.shape[1], width)
    return _padded(pixels[rows.begin:rows.end, columns.begin:columns.end], height, width)


def resize(pixels: NDArray[Any], height: int, width: int,
           interpolation: str = 'bilinear') -> NDArray[Any]:
    """The picture [H, W, C] of bytes in another size, as Pillow resizes it."""
    check_size('the resized picture', height, width)
    return resized(pixels_of(pixels), Span(height, 0, height), Span(width, 0, width), interpolation)


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _checked_size(name: str, size: Any) -> Size | None:
    if size is None:
        return None
    try:
        sides = [operator.index(side) for side in (size if isinstance(size, (list, tuple)) else [size])]
    except TypeError:
        sides = []
    if len(sides) not in (1, 2) or min(sides) < 1:
        raise arguments.refused(name, size, 'a whole number from 1, (height, width), or None')
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _checked_numbers(name: str, values: Any) -> tuple[float, ...]:
    listed = tuple(values) if isinstance(values, (list, tuple, numpy.ndarray)) else ()
    numeric = all(isinstance(value, numbers.Real) and math.isfinite(value) for value in listed)
    if not numeric or len(listed) not in (1, 3):
        raise arguments.refused(name, values, 'one number in a tuple, or one for each of 3 channels')
    return listed


def _size_after(wanted: Size | None, height: int, width: int) -> tuple[int, int]:
    if wanted is None:
        return height, width
    if not isinstance(wanted, int):
        return wanted
    if height <= width:
        return wanted, int(wanted * width / height)
    return int(wanted * height / width), wanted


def _middle(have: int, want: int) -> Span:
    """The middle of a side, or all of it if less is there than is wanted."""
    begin = round((have - want) / 2) if want < have else 0
    return Span(have, begin, min(have, begin + want))


def _padded(pixels: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """The picture with zeros on all sides, up to this size."""
    lacks = [want - have for want, have in zip((height, width), pixels.shape)]
    if not any(lacks):
        return pixels
    return numpy.pad(pixels, [*((lack // 2, (lack + 1) // 2) for lack in lacks), (0, 0)])
