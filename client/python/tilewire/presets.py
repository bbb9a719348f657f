# SPDX-License-Identifier: Apache-2.0
"""How torchvision prepares pictures for the weights that it publishes."""
from __future__ import annotations

import difflib
from typing import NamedTuple

from tilewire.errors import NotFound

Statistics = tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation of each channel
_IMAGENET: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CENTRED: Statistics = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_UNCHANGED: Statistics = ((0.0,), (1.0,))


class Preset(NamedTuple):
    resize: int | None  # the shorter side after resizing
    crop: int | None  # the side of the square that is cut out
    interpolation: str
    statistics: Statistics


# The same, and what it is for: the name of the model, or of the model and its weights.
_TABLE: list[tuple[int | None, int | None, str, Statistics, str]] = [
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
    (256, 224, 'bilinear', _IMAGENET, 'vit_b_16 vit_b_32 vit_l_32'),
    (242, 224, 'bilinear', _IMAGENET, 'vit_l_16'),
    (224, 224, 'bicubic', _IMAGENET,
     'maxvit_t regnet_y_128gf:SWAG_LINEAR_V1 regnet_y_16gf:SWAG_LINEAR_V1 '
     'regnet_y_32gf:SWAG_LINEAR_V1 vit_b_16:SWAG_LINEAR_V1 vit_h_14:SWAG_LINEAR_V1 '
     'vit_l_16:SWAG_LINEAR_V1'),
    (384, 384, 'bicubic', _IMAGENET,
     'regnet_y_128gf regnet_y_16gf:SWAG_E2E_V1 regnet_y_32gf:SWAG_E2E_V1 vit_b_16:SWAG_E2E_V1'),
    (512, 512, 'bicubic', _IMAGENET, 'vit_l_16:SWAG_E2E_V1'),
    (518, 518, 'bicubic', _IMAGENET, 'vit_h_14'),
    (232, 224, 'bicubic', _IMAGENET, 'swin_t'),
    (246, 224, 'bicubic', _IMAGENET, 'swin_s'),
    (238, 224, 'bicubic', _IMAGENET, 'swin_b'),
    (260, 256, 'bicubic', _IMAGENET, 'swin_v2_s swin_v2_t'),
    (272, 256, 'bicubic', _IMAGENET, 'swin_v2_b'),
    # Networks that segment see all of the picture; those that detect resize it themselves.
    (520, None, 'bilinear', _IMAGENET,
     'deeplabv3_mobilenet_v3_large deeplabv3_resnet101 deeplabv3_resnet50 fcn_resnet101 '
     'fcn_resnet50 lraspp_mobilenet_v3_large'),
    (None, None, 'bilinear', _UNCHANGED,
     'fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_mobilenet_v3_large_fpn '
     'fasterrcnn_resnet50_fpn fasterrcnn_resnet50_fpn_v2 fcos_resnet50_fpn '
     'keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn maskrcnn_resnet50_fpn_v2 '
     'retinanet_resnet50_fpn retinanet_resnet50_fpn_v2 ssd300_vgg16 '
     'ssdlite320_mobilenet_v3_large'),
]
PRESETS = {name: Preset(size, crop, interpolation, statistics)
           for size, crop, interpolation, statistics, names in _TABLE for name in names.split()}
# Models whose default weights are neither V1 nor, where the table has V1 too, V2.
_DEFAULTS = {'regnet_y_128gf': 'SWAG_E2E_V1', 'vit_h_14': 'SWAG_E2E_V1'}


def preset(name: str) -> Preset:
    """The preset of a model with its default weights, or of a model and its weights:
    'resnet50:V1'."""
    model, _, weights = name.partition(':')
    default = _DEFAULTS.get(model, 'V2' if f'{model}:V1' in PRESETS else 'V1')
    found = PRESETS.get(model if weights == default else name)
    if found is None:
        similar = difflib.get_close_matches(name, PRESETS, 5, 0.5)
        listed = f"; similar: {', '.join(similar)}" if similar else ''
        raise NotFound(f'no preparation for {name!r}{listed}; tilewire.images.names() lists all '
                       f'{len(PRESETS)}, tilewire.images.Preparation describes others')
    return found
