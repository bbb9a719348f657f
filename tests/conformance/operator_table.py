#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a case for each operator, opset from 1 to 25 and element type, with what numpy computes for it.

A case is a model of one node, its inputs and its outputs. The types of an operator at an opset are those of ONNX's own
schemas; opsets that are newer than the package at hand have those of its newest. At each opset there are f32 and every
fourth of the other types, in turn, unless all are asked for. Cases of several nodes follow (graph_rows.py).

  /usr/bin/python3 tests/conformance/operator_table.py [--all_types] --out=FILE

FILE has one case after the other: its name, the model, the number of inputs, the inputs, the number of outputs, the
outputs. Numbers are of 4 bytes, little endian; everything else is preceded by its length.
"""

import argparse
import itertools
import struct

import numpy
from onnx import defs, helper, mapping, numpy_helper

import decoder_rows
import graph_rows
import small_type_rows
import whole_tensor_rows  # adds its rows
from elementwise_rows import FIRST_AFTER_KNOWN, FLOATS, INTEGERS, OF_INTEGERS_ALONE, ROWS, TYPES, Node, numbers

OPSETS = range(1, 26)
NEWEST_KNOWN = 17
CAST_OPSETS = (6, 9, 13, 19, 21, 25)
SCHEMA_NAMES = {"float32": "tensor(float)", "float64": "tensor(double)"}


def type_number(dtype):
    return mapping.NP_TYPE_TO_TENSOR_TYPE[numpy.dtype(dtype)]


def casts():
    for opset in CAST_OPSETS:
        for source in TYPES:
            for target in TYPES:
                x = numbers((2, 3), source, 0 if target.startswith("u") else -2)
                yield f"Cast {source} to {target}", opset, "Cast", Node([x], x.astype(target), to=type_number(target))


def known_types(operator, opset):
    """The element types of the first input at that opset; of operators that were added later, those
    of numbers."""
    if operator in OF_INTEGERS_ALONE:
        return INTEGERS
    if operator in FIRST_AFTER_KNOWN:
        return FLOATS
    try:
        schema = defs.get_schema(operator, min(opset, NEWEST_KNOWN), "")
    except defs.SchemaError:
        return ()
    allowed = schema.inputs[1 if operator == "Where" else 0].types
    return [t for t in TYPES if SCHEMA_NAMES.get(t, f"tensor({t})") in allowed]


def operators(all_types):
    for operator, since, domain_of, function in ROWS:
        for opset in OPSETS:
            for dtype in known_types(operator, opset) if opset >= since else ():
                if not all_types and dtype != "float32" and (TYPES.index(dtype) + opset) % 4 != 0:
                    continue
                node = function(opset, dtype) if domain_of(dtype) else None
                if node is not None:
                    yield f"{operator} {dtype}", opset, operator, node


def write(out, message):
    out.write(struct.pack("<I", len(message)) + message)


def write_arrays(out, arrays):
    out.write(struct.pack("<I", len(arrays)))
    for array in arrays:
        write(out, numpy_helper.from_array(numpy.ascontiguousarray(array).reshape(array.shape)).SerializeToString())


def declared(name, array):
    return helper.make_tensor_value_info(name, type_number(array.dtype), array.shape)


def write_model(out, name, model, inputs, outputs):
    write(out, name.encode())
    write(out, model.SerializeToString())
    write_arrays(out, inputs)
    write_arrays(out, outputs)


def write_case(out, name, opset, operator, node):
    inputs = [f"in{i}" for i in range(len(node.inputs))]
    outputs = [f"out{i}" for i in range(len(node.outputs))]
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, outputs, **node.attributes)],
        "case",
        [declared(n, a) for n, a in zip(inputs, node.inputs)],
        [declared(n, a) for n, a in zip(outputs, node.outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    write_model(out, f"{name} opset {opset}", model, node.inputs, node.outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--all_types", action="store_true", help="every type at every opset")
    args = parser.parse_args()
    with numpy.errstate(all="ignore"), open(args.out, "wb") as out:
        for case in itertools.chain(operators(args.all_types), casts()):
            write_case(out, *case)
        for case in graph_rows.models() + decoder_rows.models() + small_type_rows.models():
            write_model(out, *case)


if __name__ == "__main__":
    main()
