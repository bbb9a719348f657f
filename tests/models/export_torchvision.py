#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports torchvision architectures to ONNX, with random weights that are the same in every run.

Writes DIR/<name>/1/model.onnx, and what the model gives for random images, for batches 1 and 3, as raw little-endian
f32 in row-major order: DIR/<name>/input_<batch>.f32 and output_<batch>.f32.

  /usr/bin/python3 tests/models/export_torchvision.py --out=DIR [--opset=13] [--fold_batch_norms] [resnet18 resnet50 ...]
"""

import argparse
import pathlib

import torch
import torchvision

NAMES = ["resnet18", "resnet50"]


def randomize_batch_norms(model):
    """Fresh models have mean 0 and variance 1, which would hide mistakes in folding."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.normal_(module.bias, 0, 0.1)


def export(name, directory, opset, fold_batch_norms):
    torch.manual_seed(20240229)
    model = getattr(torchvision.models, name)(weights=None)
    randomize_batch_norms(model)
    model.eval()
    version = directory / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    training = torch.onnx.TrainingMode.EVAL if fold_batch_norms else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(
        model,
        torch.randn(1, 3, 224, 224),
        str(version / "model.onnx"),
        opset_version=opset,
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        training=training,
        do_constant_folding=fold_batch_norms,
    )
    for batch in (1, 3):
        image = torch.randn(batch, 3, 224, 224)
        with torch.no_grad():
            result = model(image)
        image.numpy().astype("<f4").tofile(directory / name / f"input_{batch}.f32")
        result.numpy().astype("<f4").tofile(directory / name / f"output_{batch}.f32")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, help="functions of torchvision.models")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--opset", type=int, default=13)
    parser.add_argument("--fold_batch_norms", action="store_true", help="let the exporter fold them")
    args = parser.parse_args()
    for name in args.names:
        export(name, args.out, args.opset, args.fold_batch_norms)


if __name__ == "__main__":
    main()
