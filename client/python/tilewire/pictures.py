# SPDX-License-Identifier: Apache-2.0
"""Pictures as they are given, to bytes [H, W, C]."""
from __future__ import annotations

import os
from typing import Any

import numpy
from numpy.typing import NDArray

from tilewire.errors import Error, InvalidArgument, NotFound
from tilewire.tensors import array_of

# The most pixels of a picture, before and after it is resized.
MOST_PIXELS = 1 << 26


def check_size(what: str, height: int, width: int) -> None:
    if height < 1 or width < 1:
        raise InvalidArgument(f'{what} has no pixels: {height} rows of {width}')
    if height * width > MOST_PIXELS:
        raise InvalidArgument(f'{what} has {height} rows of {width} pixels, more than 2^26 in all')


def _rgb(image: Any, what: str) -> NDArray[Any]:
    """The bytes of an image of Pillow's. Of 16 bits the upper 8 are taken, as Pillow itself does for
    pictures in colour; transparency is dropped.
    """
    check_size(what, image.height, image.width)
    if image.mode.startswith('I;16') or image.mode == 'I' and image.format in ('PNG', 'PPM'):
        grey = (numpy.asarray(image) >> 8).astype(numpy.uint8)
        return numpy.repeat(grey[:, :, None], 3, axis=2)
    if image.mode in ('I', 'F'):
        raise InvalidArgument(f'{what} has pixels of 32 bits (mode {image.mode}), which have no range: '
                              'make bytes of them')
    return numpy.asarray(image.convert('RGB'))


def _by_pillow(picture: Any) -> NDArray[Any]:
    """The pixels of a path, or of an image whose pixels may not have been read."""
    named = isinstance(picture, (str, os.PathLike))
    what = str(picture) if named else 'the picture'
    try:
        if not named:
            return _rgb(picture, what)
        from PIL import Image
        with Image.open(picture) as image:
            return _rgb(image, what)
    except Error:
        raise
    except ImportError as error:
        raise InvalidArgument(f'{what}: files are read by Pillow, which is not installed '
                              '(python3-pil, or pip install pillow)') from error
    except FileNotFoundError as error:
        raise NotFound(f'{what}: there is no such file') from error
    except Exception as error:  # whatever Pillow's decoders meet in a broken file
        raise InvalidArgument(f'{what}: {error}') from error


def pixels_of(picture: Any) -> NDArray[Any]:
    """The pixels of a path, an image of Pillow's, or an array: bytes [H, W, C], of which C is 1 or
    3."""
    if isinstance(picture, (str, os.PathLike)) or hasattr(picture, 'convert') and hasattr(picture, 'mode'):
        return _by_pillow(picture)
    pixels = array_of('the picture', picture)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    shape = list(pixels.shape)
    if pixels.ndim != 3 or pixels.dtype != numpy.uint8 or shape[2] not in (1, 3, 4):
        planes = pixels.ndim == 3 and shape[0] in (1, 3, 4) and shape[2] not in (1, 3, 4)
        hint = '; it looks like [C, H, W]: x.transpose(1, 2, 0)' if planes else ''
        raise InvalidArgument(f'a picture is bytes [H, W] or [H, W, C], C being 1, 3 or 4, not '
                              f'{pixels.dtype}{shape}{hint}')
    check_size('the picture', *pixels.shape[:2])
    return pixels[:, :, :3]
