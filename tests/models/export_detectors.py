#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports detectors to ONNX, with random weights that are the same in every run; how many boxes they give depends on
the image.

  grid       a convolutional net in the manner of YOLO: a box and class scores for each cell, boxes above a score,
             NonMaxSuppression, the best few
  ssdlite, retinanet   torchvision's, with its postprocessing

A MODEL is a name or NAME-OPSET. Writes DIR/<MODEL>/1/model.onnx and, for two random images, what torch gives:
DIR/<MODEL>/input_<i>.f32, boxes_<i>.f32, scores_<i>.f32, labels_<i>.s64.

  /usr/bin/python3 tests/models/export_detectors.py --out=DIR grid ssdlite ...
"""

import argparse
import pathlib

import torch
import torchvision

IMAGES = 2
SIZES = {"grid": 96, "ssdlite": 320, "retinanet": 128}
OPSETS = {"grid": 13, "ssdlite": 11, "retinanet": 11}


class Grid(torch.nn.Module):
    def __init__(self, classes=5, anchors=3):
        super().__init__()
        self.anchors, self.outputs = anchors, 5 + classes
        layers, width = [], 3
        for wider in (16, 32, 64):
            layers += [torch.nn.Conv2d(width, wider, 3, stride=2, padding=1), torch.nn.SiLU()]
            width = wider
        self.backbone = torch.nn.Sequential(*layers)
        self.head = torch.nn.Conv2d(width, anchors * self.outputs, 1)
        torch.nn.init.normal_(self.head.weight, 0, 6)

    def forward(self, images):
        raw = self.head(self.backbone(images[0].unsqueeze(0)))
        rows, columns = raw.shape[2], raw.shape[3]
        raw = raw.view(self.anchors, self.outputs, rows, columns).permute(0, 2, 3, 1)
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        center = (raw[..., :2].sigmoid() * 2 - 0.5 + torch.stack((x, y), -1)) * 8
        size = (raw[..., 2:4].sigmoid() * 2) ** 2 * 16
        boxes = torch.cat((center - size / 2, center + size / 2), -1).reshape(-1, 4)
        scores, labels = (raw[..., 4:5].sigmoid() * raw[..., 5:].sigmoid()).reshape(-1, self.outputs - 5).max(1)
        found = torch.where(scores > 0.4)[0]
        boxes, scores, labels = boxes[found], scores[found], labels[found]
        kept = torchvision.ops.batched_nms(boxes, scores, labels, 0.45)[:60]
        return [{"boxes": boxes[kept], "scores": scores[kept], "labels": labels[kept]}]


def tell_boxes_apart(model):
    """Fresh weights give every box the same score."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
    return model


def create(name):
    detection = torchvision.models.detection
    if name == "grid":
        return Grid()
    if name == "ssdlite":
        model = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
        return tell_boxes_apart(model)
    levels = torchvision.ops.feature_pyramid_network.LastLevelP6P7(256, 256)
    backbone = detection.backbone_utils.resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, returned_layers=[2, 3, 4], extra_blocks=levels)
    model = detection.RetinaNet(backbone, num_classes=5, min_size=SIZES[name], max_size=SIZES[name],
                                topk_candidates=50, detections_per_img=20)
    torch.nn.init.normal_(model.head.classification_head.cls_logits.weight, 0, 0.3)
    return model


def export(name, out):
    torch.manual_seed(20240229)
    detector, _, opset = name.partition("-")
    model = create(detector).eval()
    version = out / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    size = SIZES[detector]
    image = torch.rand(3, size, size)
    outputs = list(model([image])[0])
    torch.onnx.export(model, ([image],), str(version / "model.onnx"), opset_version=int(opset or OPSETS[detector]),
                      input_names=["image"], output_names=outputs)
    for i in range(IMAGES):
        image = torch.rand(3, size, size) * (i + 1) / IMAGES
        with torch.no_grad():
            found = model([image])[0]
        image.numpy().astype("<f4").tofile(out / name / f"input_{i}.f32")
        for output in ("boxes", "scores"):
            found[output].numpy().astype("<f4").tofile(out / name / f"{output}_{i}.f32")
        found["labels"].numpy().astype("<i8").tofile(out / name / f"labels_{i}.s64")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    for name in args.models:
        export(name, args.out)


if __name__ == "__main__":
    main()
