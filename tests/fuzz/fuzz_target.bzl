"""A function LLVMFuzzerTestOneInput: a test that runs its corpus, or a program of libFuzzer."""

_LIBFUZZER = "//tests/fuzz:with_libfuzzer"

# The library in Debian's libclang-rt-14-dev.
_LIBRARY = "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-x86_64.a"

def fuzz_target(name, deps):
    """<name>_fuzzer.cc, with its corpus in corpus/<name>.

    Args:
      name: of the decoder.
      deps: what it needs.
    """
    native.cc_test(
        name = name + "_fuzzer",
        size = "small",
        srcs = [name + "_fuzzer.cc", "slices.h"],
        args = ["tests/fuzz/corpus/" + name],
        data = native.glob(["corpus/" + name + "/*"]),
        linkopts = select({
            # The library has a function of the name that gcc_coverage.cc defines: the first one wins.
            _LIBFUZZER: ["-Wl,--allow-multiple-definition", _LIBRARY],
            "//conditions:default": [],
        }),
        deps = deps + ["//engine/base", ":quiet_protobuf", "@system//:absl", "@system//:grpc"] + select({
            _LIBFUZZER: [":gcc_coverage"],
            "//conditions:default": [":corpus_driver"],
        }),
    )
