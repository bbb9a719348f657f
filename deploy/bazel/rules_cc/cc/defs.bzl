"""Forwards to Bazel 4.2's native C++ rules: Debian's bazel-rules-cc is too new for it."""

cc_library = native.cc_library
cc_binary = native.cc_binary
cc_test = native.cc_test
cc_import = native.cc_import
cc_proto_library = native.cc_proto_library
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite

def cc_flags_supplier(**_kwargs):
    pass

def compiler_flag(**_kwargs):
    pass
