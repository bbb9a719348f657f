"""Precompiled headers: what every source of a room would parse again is parsed once."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The headers that every room includes.
EVERYWHERE = [
    "algorithm",
    "array",
    "atomic",
    "bit",
    "cmath",
    "cstddef",
    "cstdint",
    "cstring",
    "functional",
    "limits",
    "map",
    "memory",
    "numeric",
    "optional",
    "string",
    "utility",
    "variant",
    "vector",
    "absl/container/flat_hash_map.h",
    "absl/container/inlined_vector.h",
    "absl/functional/function_ref.h",
    "absl/status/statusor.h",
    "absl/strings/str_cat.h",
    "absl/strings/str_join.h",
    "absl/types/span.h",
]

# The headers that generated messages include.
PROTOBUF = [
    "google/protobuf/arena.h",
    "google/protobuf/extension_set.h",
    "google/protobuf/generated_message_reflection.h",
    "google/protobuf/generated_message_util.h",
    "google/protobuf/io/coded_stream.h",
    "google/protobuf/message.h",
    "google/protobuf/metadata_lite.h",
    "google/protobuf/repeated_field.h",
    "google/protobuf/unknown_field_set.h",
]

# The headers of code that serves and of code that calls.
CALLS = EVERYWHERE + [
    "chrono",
    "absl/strings/str_format.h",
    "absl/synchronization/mutex.h",
    "absl/time/clock.h",
] + PROTOBUF + [
    "google/protobuf/map.h",
    "google/protobuf/map_entry.h",
    "google/protobuf/map_field_inl.h",
    "google/protobuf/generated_enum_reflection.h",
    "grpcpp/grpcpp.h",
]

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    ctx.actions.write(header, "".join(["#include <%s>\n" % name for name in ctx.attr.headers]))

    # The flags that the toolchain gives a source, so that the compiler finds them equal.
    action = "c++-compile"
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = compiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"],
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = action),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        inputs = depset([header], transitive = [toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % header.short_path,
    )
    files = depset([header, compiled])
    return [
        DefaultInfo(files = files),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = files,
            quote_includes = depset([ctx.bin_dir.path]),
        )),
    ]

# Generates <name>.h, which includes `headers`, and compiles it once. A target that depends on it and is
# compiled with "-include <package>/<name>.h" (.bazelrc says which) gets the compiled form; sources still
# include what they use. Only headers of the system: the compiler does not tell Bazel what a source
# got this way, so that a change to one of ours would go unseen.
precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "copts": attr.string_list(doc = "what .bazelrc adds for the sources: an object for size needs a header for size"),
        "headers": attr.string_list(mandatory = True, doc = "of the system, as in #include <...>"),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
