"""Rooms of the project: a folder whose sources are one library."""

load("//deploy/bazel:merged.bzl", "merged_library")

def room(name, deps, hdrs = ["**/*.h"], srcs = None):
    """All sources of this folder and those in it, unless some are named; every room may use Abseil."""
    merged_library(
        name = name,
        srcs = native.glob(["**/*.cc"]) if srcs == None else srcs,
        hdrs = native.glob(hdrs) if hdrs else [],
        visibility = ["//visibility:public"],
        deps = deps + ["@system//:absl"],
    )

def primitive(name, deps = [], hdrs = ["**/*.h"], srcs = None):
    """A folder of engine/primitives: contract, table of implementations, what they are made of."""
    room(
        name = name,
        hdrs = hdrs,
        srcs = srcs,
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
