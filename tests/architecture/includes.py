# SPDX-License-Identifier: Apache-2.0
"""Which room may include which: the table of rooms, as rules."""

import re

from tree import included_by, reachable

# A room may include itself, these, and what these may include.
ROOMS = {
    "engine/base": [],
    "engine/cpu": ["engine/base"],
    "engine/memory": ["engine/base"],
    "engine/threading": ["engine/base", "engine/cpu"],
    "engine/training": ["engine/base", "engine/functions", "engine/memory", "engine/threading"],
    "engine/functions": ["engine/base"],
    "engine/jit": ["engine/base", "engine/cpu", "engine/functions"],
    "engine/kernels": ["engine/base", "engine/cpu", "engine/memory", "engine/threading",
                       "engine/jit"],
    "engine/primitives": ["engine/kernels"],
    "engine/cache": ["engine/primitives"],
    "engine/network": ["engine/base", "engine/functions", "engine/memory"],
    "engine/onnx": ["engine/network", "protos"],
    "engine/runtime": ["engine/cache", "engine/network", "engine/primitives"],
    "engine/lowering": ["engine/runtime"],
    "engine": ["engine/primitives", "engine/cache", "engine/training"],
    "engine/facade": ["engine", "engine/onnx", "engine/lowering", "engine/tuning"],
    "engine/tuning": ["engine", "engine/onnx"],
    "service/observe": [],
    "service/schedule": ["service/observe"],
    "service/wire": ["engine/memory", "protos"],
    "service/models": ["engine/base", "protos", "service/schedule", "service/observe"],
    "service/front": ["protos", "service/observe"],
    "service/trace": ["protos", "service/observe"],
    "service/rpc": ["service/wire", "service/models", "service/front", "service/trace"],
    "service/http": ["service/wire", "service/models", "service/front", "service/trace"],
    "service": ["service/rpc", "service/http"],
    "client": ["protos"],
    "protos": [],
    "deploy": [],
}

# Single headers beyond the room's row.
HEADERS = {
    # `tilewire check` reads a file as a server would, `tilewire train` trains one, and `tilewire tune` makes a faster
    # one of it; all without a server.
    "client": ["engine/base/control_groups.h", "engine/engine.h", "engine/error_budget.h",
               "engine/memory/dims.h", "engine/model.h",
               "engine/onnx/file/new_file.h", "engine/onnx/model_check.h", "engine/onnx/training_refusal.h",
               "engine/trainer.h", "engine/tuner.h", "engine/tuning_text.h",
               "service/models/model_config.h", "service/models/repository_scan.h",
               "service/models/served_tensors.h"],
    "service/observe": ["engine/base/control_groups.h", "engine/base/line_writer.h",
                        "engine/base/utf8.h",
                        "engine/threading/mutex.h"],
    "service/trace": ["engine/base/status_macros.h", "engine/base/utf8.h",
                      "engine/longest_steps.h", "engine/threading/background_thread.h",
                      "engine/threading/mutex.h", "service/version.h"],
    # The list of primitives is a list of names.
    "service/wire": ["engine/primitives/primitive_list.inc", "engine/threading/mutex.h",
                     "service/observe/steady_time.h"],
    "service/schedule": ["engine/threading/arena.h", "engine/threading/background_thread.h",
                         "engine/threading/mutex.h", "engine/threading/urgent_work.h"],
    "service/models": ["engine/threading/background_thread.h", "engine/threading/mutex.h",
                       "service/wire/edit_distance.h", "service/wire/status_text.h",
                       "service/wire/tensor_layout.h"],
    "service/front": ["engine/threading/background_thread.h", "engine/threading/mutex.h",
                      "engine/threading/urgent_work.h",
                      "service/wire/inflate.h"],
    "service/http": ["engine/base/control_groups.h", "engine/threading/background_thread.h"],
    "service/rpc": ["engine/longest_steps.h", "engine/threading/core_time.h", "engine/tuning_text.h",
                    "engine/threading/mutex.h", "service/version.h"],
    "service": ["engine/threading/background_thread.h", "engine/threading/mutex.h",
                "engine/threading/pinning.h", "engine/threading/urgent_work.h"],
}

# Rooms that see the engine through its door.
USERS_OF_THE_ENGINE = ["service/wire", "service/models", "service/rpc", "service/http", "service"]

# The headers of the engine that the service may include; the path of a model's request needs the
# narrow ones.
NARROW_DOORS = ["engine/model.h", "engine/engine.h", "engine/explanation.h"]
DOORS = NARROW_DOORS + ["engine/primitive_engine.h"]

# Libraries that only some rooms may know.
LIBRARIES = {
    r"(oneapi/)?tbb/": ["engine/threading"],
    r"xbyak/": ["engine/jit", "engine/kernels", "engine/primitives"],
    r"grpc(pp|\+\+)?/": ["service", "service/front", "service/wire", "service/rpc",
                          "service/trace", "client"],
    r"google/protobuf/": ["engine/onnx", "engine/tuning", "service", "service/wire", "service/models", "service/rpc",
                          "client"],
    r"spdlog/": ["engine/facade", "service", "service/front", "service/models", "service/rpc",
                 "service/observe", "service/trace", "client"],
    r"prometheus/": ["service/observe"],
    r"microhttpd": ["service/http"],
    r"(oneapi/)?dnnl": [],
}

# Code that runs a request whatever protocol brings it.
WITHOUT_PROTOCOL = ["service/rpc/call.h", "service/rpc/call.cc", "service/rpc/job.h",
                    "service/rpc/call_host.h"]

_INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def room_of(path):
    """The longest room that holds `path`; None for tests and for what is outside the project."""
    best = None
    for room in ROOMS:
        if path.startswith(room + "/") and (best is None or len(room) > len(best)):
            best = room
    return best


def _facade_surface(tree):
    """The doors and the headers they include: what their users see of the engine anyway."""
    return DOORS + [header for door in DOORS if door in tree.files
                    for header in included_by(tree, door)]


# A primitive may reorder its tensors inside; the gradient of a convolution's src, where it has a
# stride, is a deconvolution, a deconvolution's gradients are convolutions, and a prelu is a binary
# function.
REORDERS = "engine/primitives/reorder/reorder.h"
OTHERS = {"engine/primitives/convolution/backward/backward_data.cc":
          "engine/primitives/deconvolution/implementations.h",
          "engine/primitives/deconvolution/backward.cc":
          "engine/primitives/convolution/convolution.h",
          "engine/primitives/prelu/as_binary.cc":
          "engine/primitives/binary/binary.h"}


def _primitive_folder(path):
    match = re.match(r"engine/primitives/(\w+)/", path)
    return match.group(1) if match else None


def _wrong_room(path, room, header, facade):
    other = room_of(header)
    if other is None or other in reachable([room], ROOMS.__getitem__) or header in HEADERS.get(room, []):
        return None
    if room in USERS_OF_THE_ENGINE and header in facade:
        return None
    return f"{path}: {room} may not include {header}"


def _wrong_primitive(path, header):
    mine, other = _primitive_folder(path), _primitive_folder(header)
    if mine and other and mine != other and header != REORDERS and OTHERS.get(path) != header:
        return f"{path}: a primitive's folder may not include another's ({header})"
    return None


def _wrong_library(path, room, header):
    for library, rooms in LIBRARIES.items():
        if re.match(library, header) and room not in rooms:
            return f"{path}: {room} may not include {header}"
    return None


def _protocol(path, header):
    if path in WITHOUT_PROTOCOL and re.match(r"grpc|google/protobuf/|protos/", header):
        return f"{path}: it serves any protocol and may not include {header}"
    return None


def check(tree):
    problems = []
    facade = _facade_surface(tree)
    for path in tree.with_suffix(".h", ".cc", ".inc"):
        room = room_of(path)
        if room is None:
            continue
        for quoted, bracketed in _INCLUDE.findall(tree.text(path)):
            header = quoted or bracketed
            problems += filter(None, [_wrong_room(path, room, header, facade),
                                      _wrong_primitive(path, header),
                                      _wrong_library(path, room, header),
                                      _protocol(path, header)])
    return problems
