"""The repositories that building takes, for this workspace and for others that use it."""

def tilewire_repositories(root):
    """Everything comes from Debian packages (deploy/install_deps.sh); nothing is downloaded.

    Args:
      root: the folder of this tree, absolute or relative to the workspace.
    """

    # Bazel 4.2 asks for these repositories by itself: declared here, they win offline.
    for name, path in {
        "rules_cc": root + "/deploy/bazel/rules_cc",
        "remote_coverage_tools": root + "/deploy/bazel/remote_coverage_tools",
        "rules_java": "/usr/share/bazel/rules/java",
        "rules_proto": "/usr/share/bazel/rules/proto",
        "platforms": "/usr/share/bazel/tools/platforms",
        "bazel_skylib": "/usr/share/bazel/tools/skylib",
    }.items():
        native.local_repository(name = name, path = path)

    # Debian's libraries: headers in /usr/include, one target a library.
    native.new_local_repository(
        name = "system",
        build_file = "@tilewire//deploy/bazel:system.BUILD",
        path = "/usr/share/bazel/tools/platforms",
    )
