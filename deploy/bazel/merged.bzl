"""Merged sources: several .cc of a room are compiled as one, so that what they all include is read once.

Most sources here are short, and most of the time that a short source takes goes into its headers and into
the templates that its neighbours instantiate too. Each unit is the text of its sources one after the other;
errors and debuggers name the original files. The price: names in anonymous namespaces are unique within a
room, and a change of one file compiles its whole room again, unless --config=edit asks for small units.
"""

_SOURCES_PER_UNIT = select({
    "//deploy/bazel:small_units": 2,
    "//conditions:default": 40,
})

def _merged_sources_impl(ctx):
    sources = ctx.files.srcs
    count = (len(sources) + ctx.attr.sources_per_unit - 1) // ctx.attr.sources_per_unit
    units = []
    commands = []
    for unit in range(count):
        output = ctx.actions.declare_file("%s_%d.cc" % (ctx.label.name, unit + 1))
        members = sources[len(sources) * unit // count:len(sources) * (unit + 1) // count]
        texts = ["printf '#line 1 \"%s\"\\n'; cat '%s'" % (member.path, member.path) for member in members]
        commands.append("{ %s; } > '%s'" % ("; ".join(texts), output.path))
        units.append(output)
    ctx.actions.run_shell(
        inputs = sources,
        outputs = units,
        command = " && ".join(commands),
        mnemonic = "MergeSources",
        progress_message = "Merging sources of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(units))]

_merged_sources = rule(
    implementation = _merged_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "sources_per_unit": attr.int(mandatory = True),
    },
)

def _merged(rule, name, srcs, testonly = None, **kwargs):
    _merged_sources(
        name = name + "_unit",
        srcs = [source for source in srcs if source.endswith(".cc")],
        sources_per_unit = _SOURCES_PER_UNIT,
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    rule(
        name = name,
        srcs = [":" + name + "_unit"] + [source for source in srcs if not source.endswith(".cc")],
        testonly = testonly,
        **kwargs
    )

def merged_library(name, **kwargs):
    """A cc_library whose sources are compiled many at a time."""
    _merged(native.cc_library, name, **kwargs)

def merged_binary(name, **kwargs):
    """A cc_binary whose sources are compiled many at a time."""
    _merged(native.cc_binary, name, **kwargs)

# The libraries that every test links.
_OF_ALL_TESTS = [
    "//tests/support",
    "@system//:gtest",
    "@system//:gtest_main",
]

def merged_test(name, srcs = None, deps = [], size = "small", **kwargs):
    """A cc_test whose sources are compiled many at a time.

    Args:
      name: of the cc_test.
      srcs: all sources and headers of the package, if none are given.
      deps: beside //tests/support and GoogleTest.
      size: see cc_test.
      **kwargs: of cc_test.
    """
    _merged(
        native.cc_test,
        name,
        srcs = srcs if srcs != None else native.glob(["*.cc", "*.h"]),
        deps = [dep for dep in deps if dep not in _OF_ALL_TESTS] + _OF_ALL_TESTS,
        size = size,
        testonly = True,
        **kwargs
    )
