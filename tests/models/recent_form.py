#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites an exported model into the form that PyTorch's exporter writes since version 2.9.

A later opset, IR version 10, weights in model.onnx.data beside the model, every attribute with a default written out,
axes as inputs, means instead of global poolings, no Constant nodes, metadata on each node. DIR/<FROM> is what
export_torchvision.py wrote; DIR/<TO> gets the rewritten model and the same inputs and expected outputs.

  /usr/bin/python3 tests/models/recent_form.py --source=DIR/resnet18-13 --out=DIR/resnet18-20 --opset=20
"""

import argparse
import pathlib
import shutil

import numpy
import onnx
from onnx import helper, numpy_helper

IR_VERSION = 10
DATA_FILE = "model.onnx.data"
SMALLEST_EXTERNAL = 256  # bytes; smaller initializers stay in the file, as the exporter leaves them

# Attributes with a default, as the exporter writes them out.
DEFAULTS = {
    "AveragePool": {"auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0, "dilations": "ones"},
    "BatchNormalization": {"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0},
    "Cast": {"saturate": 1},
    "Conv": {"auto_pad": "NOTSET", "dilations": "ones", "group": 1, "strides": "ones"},
    "Flatten": {"axis": 1},
    "Gemm": {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LayerNormalization": {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    "MaxPool": {"auto_pad": "NOTSET", "ceil_mode": 0, "dilations": "ones", "storage_order": 0},
    "ReduceMean": {"keepdims": 1, "noop_with_empty_axes": 0},
    "Reshape": {"allowzero": 0},
    "Resize": {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"},
    "Shape": {"start": 0},
    "Softmax": {"axis": -1},
}
SINCE = {"AveragePool.dilations": 19, "Cast.saturate": 19}


def add_initializer(graph, name, values):
    graph.initializer.append(numpy_helper.from_array(numpy.array(values, dtype=numpy.int64), name))
    return name


def write_defaults(node, opset):
    present = {attribute.name: attribute for attribute in node.attribute}
    spatial = len(present["kernel_shape"].ints) if "kernel_shape" in present else 0
    for name, value in DEFAULTS.get(node.op_type, {}).items():
        if name in present or opset < SINCE.get(f"{node.op_type}.{name}", 0):
            continue
        if value == "ones":
            value = [1] * spatial
        node.attribute.append(helper.make_attribute(name, value))


def move_axes_to_input(graph, node):
    if node.op_type == "GlobalAveragePool":
        node.op_type = "ReduceMean"
        node.input.append(add_initializer(graph, node.output[0] + "_axes", [-1, -2]))
        return
    for attribute in node.attribute:
        if node.op_type.startswith("Reduce") and attribute.name == "axes":
            node.input.append(add_initializer(graph, node.output[0] + "_axes", list(attribute.ints)))
            node.attribute.remove(attribute)
            return


def count_parts(node):
    if node.op_type == "Split" and len(node.input) == 1:
        node.attribute.append(helper.make_attribute("num_outputs", len(node.output)))


def add_metadata(node):
    """Field 9 of NodeProto (metadata_props), which the onnx package at hand is too old to name."""
    entry = onnx.StringStringEntryProto(key="namespace", value="root/" + node.name).SerializeToString()
    node.MergeFromString(bytes([9 << 3 | 2, len(entry) & 127 | 128, len(entry) >> 7]) + entry)


def rewrite_nodes(graph, opset):
    nodes = []
    for node in list(graph.node):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rewrite_nodes(attribute.g, opset)
        if node.op_type == "Constant":
            tensor = node.attribute[0].t
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
            continue
        if node.op_type == "Dropout":
            node.op_type = "Identity"
            del node.input[1:]
            del node.attribute[:]
        move_axes_to_input(graph, node)
        count_parts(node)
        write_defaults(node, opset)
        node.name = f"node_{node.op_type}_{len(nodes)}"
        add_metadata(node)
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def move_weights_out(graph, path):
    with open(path, "wb") as data:
        for tensor in graph.initializer:
            raw = numpy_helper.to_array(tensor).tobytes()
            if len(raw) < SMALLEST_EXTERNAL:
                continue
            offset = data.tell()
            data.write(raw)
            for field in ("raw_data", "float_data", "int64_data", "int32_data"):
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", DATA_FILE), ("offset", offset), ("length", len(raw))):
                tensor.external_data.add(key=key, value=str(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--opset", type=int, required=True)
    args = parser.parse_args()
    version = args.out / "1"
    version.mkdir(parents=True, exist_ok=True)
    model = onnx.load(args.source / "1" / "model.onnx")
    rewrite_nodes(model.graph, args.opset)
    move_weights_out(model.graph, version / DATA_FILE)
    model.ir_version = IR_VERSION
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", args.opset))
    model.producer_name = "pytorch"
    (version / "model.onnx").write_bytes(model.SerializeToString())
    for pattern in ("*.f32", "*.s64"):
        for path in args.source.glob(pattern):
            shutil.copyfile(path, args.out / path.name)


if __name__ == "__main__":
    main()
