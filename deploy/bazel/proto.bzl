"""C++ from .proto files, with Debian's protoc and gRPC plugin: no rule is downloaded."""

def tilewire_cc_proto(name, src, deps = [], grpc = False, alwayslink = False):
    """A cc_library with the messages (and with grpc=True the services) of one .proto file.

    Include them as "protos/<file>.pb.h" and "protos/<file>.grpc.pb.h".

    Args:
      name: of the cc_library, by convention <something>_cc_proto.
      src: the .proto file of this package; it imports others as "protos/<file>.proto".
      deps: tilewire_cc_proto targets whose .proto files `src` imports.
      alwayslink: link it even where no code names one of its messages, so that reflection finds the file.
      grpc: also run grpc_cpp_plugin, link gRPC, and compile with the package's precompiled headers.
    """
    if not src.endswith(".proto"):
        fail("src must be a .proto file: " + src)
    stem = src[:-len(".proto")]
    sources = [stem + ".pb.cc"]
    headers = [stem + ".pb.h"]
    command = "protoc -I. --cpp_out=$(GENDIR) "
    if grpc:
        sources.append(stem + ".grpc.pb.cc")
        headers.append(stem + ".grpc.pb.h")
        command += "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) "
    native.filegroup(
        name = name + "_src",
        srcs = [src] + [dep + "_src" for dep in deps],
    )
    native.genrule(
        name = name + "_gen",
        srcs = [src] + [dep + "_src" for dep in deps],
        outs = sources + headers,
        cmd = command + "$(location " + src + ")",
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],  # generated code
        linkstatic = True,
        alwayslink = alwayslink,
        visibility = ["//visibility:public"],
        deps = deps + (["@system//:grpc", ":precompiled"] if grpc else ["@system//:protobuf"]),
    )
