# SPDX-License-Identifier: Apache-2.0
"""Writes a model of BF16 that takes one row at a time: halves.py FILE (y = relu(x), of [1,4])."""
import sys

from onnx import TensorProto, helper, save

x, y = (helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [1, 4]) for name in 'xy')
graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'halves', [x], [y])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 14)]), sys.argv[1])
