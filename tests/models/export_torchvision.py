#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports image classifiers and segmentation networks to ONNX, with random weights that are the same in every run.

A MODEL is NAME or NAME-OPSET; the names are functions of torchvision.models or of its segmentation models, or of
lrn_models.py and recurrent_models.py beside this file.
Writes DIR/<MODEL>/1/model.onnx, and what the model gives for random images, for batches 1, 3 and 8, as raw
little-endian f32 in row-major order: DIR/<MODEL>/input_<batch>.f32 and output_<batch>.f32; with --f64 also what it
gives in f64, output_<batch>.f64.

  /usr/bin/python3 tests/models/export_torchvision.py --out=DIR [--fold_batch_norms] [--f64] resnet18 mobilenet_v2-11 ...
"""

import argparse
import pathlib

import torch
import torchvision

import lrn_models
import recurrent_models

BATCHES = (1, 3, 8)
DEFAULT_OPSET = 13
SIZE = 224
SIZES = {"inception_v3": 299, "text_recogniser": 64, "text_recogniser_gru": 64}
SEGMENTATION_SIZE = 96  # the scores have as many pixels as the image
CLASSES = 21


class Segmentation(torch.nn.Module):
    """The scores of each pixel's classes, without what only training needs."""

    def __init__(self, name):
        super().__init__()
        create_model = getattr(torchvision.models.segmentation, name)
        self.model = create_model(weights=None, weights_backbone=None, num_classes=CLASSES)

    def forward(self, image):
        return self.model(image)["out"]


def randomize_transformer(model):
    """Layer normalisations that do nothing, biases of zero, and the last layer of a fresh ViT, which is all zeros."""
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, 0, 0.02)


def randomize(model):
    """Randomises parameters that fresh models have the same of everywhere, which would hide
    mistakes in folding: mean 0 and variance 1 of batch normalisations, and the scales of a
    millionth by which ConvNeXt's blocks start as good as empty."""
    models = torchvision.models
    if isinstance(model, (models.MaxVit, models.SwinTransformer, models.VisionTransformer)):
        randomize_transformer(model)
    for module in model.modules():
        if hasattr(module, "layer_scale"):
            torch.nn.init.uniform_(module.layer_scale, 0.5, 1.0)
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.normal_(module.bias, 0, 0.1)


def is_segmentation(name):
    return hasattr(torchvision.models.segmentation, name)


def create(name):
    for module in (lrn_models, recurrent_models):
        if hasattr(module, name):
            return getattr(module, name)()
    if is_segmentation(name):
        return Segmentation(name)
    # init_weights of GoogLeNet draws with SciPy, for minutes; torch's own initial weights serve as well.
    options = {"init_weights": False} if name in ("googlenet", "inception_v3", "vgg16") else {}
    return getattr(torchvision.models, name)(weights=None, **options)


def write(tensor, element, path):
    tensor.numpy().astype(element).tofile(path)


def export(name, out, fold_batch_norms, f64):
    torch.manual_seed(20240229)
    architecture, _, opset = name.partition("-")
    model = create(architecture)
    randomize(model)
    model.eval()
    size = SEGMENTATION_SIZE if is_segmentation(architecture) else SIZES.get(architecture, SIZE)
    version = out / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    training = torch.onnx.TrainingMode.EVAL if fold_batch_norms else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(
        model,
        torch.randn(1, 3, size, size),
        str(version / "model.onnx"),
        opset_version=int(opset or DEFAULT_OPSET),
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        training=training,
        do_constant_folding=fold_batch_norms,
    )
    for batch in BATCHES:
        image = torch.randn(batch, 3, size, size)
        with torch.no_grad():
            result = model(image)
        write(image, "<f4", out / name / f"input_{batch}.f32")
        write(result, "<f4", out / name / f"output_{batch}.f32")
        if f64:
            with torch.no_grad():
                write(model.double()(image.double()), "<f8", out / name / f"output_{batch}.f64")
            model.float()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--fold_batch_norms", action="store_true", help="let the exporter fold them")
    parser.add_argument("--f64", action="store_true", help="write answers in f64, too")
    args = parser.parse_args()
    for name in args.models:
        export(name, args.out, args.fold_batch_norms, args.f64)


if __name__ == "__main__":
    main()
