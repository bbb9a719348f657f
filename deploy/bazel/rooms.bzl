"""Rooms of the project: a folder whose sources are one library."""

load("//deploy/bazel:merged.bzl", "merged_library")

def room(name, deps, hdrs = ["**/*.h"]):
    """All sources of this folder and those in it; every room may use Abseil."""
    merged_library(
        name = name,
        srcs = native.glob(["**/*.cc"]),
        hdrs = native.glob(hdrs),
        visibility = ["//visibility:public"],
        deps = deps + ["@system//:absl"],
    )

def primitive(name, deps = []):
    """A folder of engine/primitives: contract, table of implementations, what they are made of."""
    room(
        name = name,
        deps = deps + [
            "//engine/primitives:primitive",
            "//engine/base",
            "//engine/cpu",
            "//engine/memory",
            "//engine/threading",
            "//engine/jit",
            "//engine/kernels",
        ],
    )
