# SPDX-License-Identifier: Apache-2.0
"""A source includes, directly or through other headers, the headers that declare the names which it uses.

Sources are compiled many at a time, and some headers are included by force (deploy/bazel/merged.bzl, precompiled.bzl),
so the build does not notice a missing include. Judged are names that one header of the project alone declares, and
common ones of the standard library and of Abseil; tests/standalone_sources.sh compiles each file by itself.
"""

import collections
import functools
import glob
import os
import re

from tree import reachable

# At the left edge of a header: types, constants, functions and macros.
_OF_A_NAMESPACE = re.compile(
    r"^(?:(?:class|struct|enum(?: class)?)\s+(?:ABSL_\w+(?:\([^)]*\))?\s+)?(\w+)(?:\s+final)?\s*[:{]"
    r"|using\s+(\w+)\s*=|(?:inline\s+)?constexpr\s[^;({=]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\])*\s*[={;]"
    r"|#define\s+(\w+)\(|(?!#|using|typedef)[^\s(=][^(=;]*?[\s&*]([A-Z]\w*)\()", re.MULTILINE)
# Anywhere: declarations that could be meant by the name instead.
_ANYWHERE = re.compile(
    r"\b(?:class|struct|enum(?: class)?|message|using|service|typename|#define)\s+(?:ABSL_\w+(?:\([^)]*\))?\s+)?(\w+)"
    r"|\b(k[A-Z]\w*)\s*(?:\[[^\]]*\])*\s*[={,}]"
    r"|(?<=[\w>&*])(?<!return)(?<!else)(?<!case)(?<!new)\s[&*]?([A-Z]\w*)\(")
_USE = re.compile(r"(?<![\w.:>~])[A-Z]\w*|\bk[A-Z]\w*")
# Bodies of macros, and arguments, which may be parts of names.
_MACRO = re.compile(r"(?<=#define)(?:.*\\\n)*.*|(?<=[A-Z0-9_]{3}\()[^()]*|(?<=INSTANTIATE_TEST_SUITE_P\()\s*\w+,\s*\w+")
_BROUGHT = re.compile(r"\busing\s+[\w:]*::(\w+);")

# Names of the standard library and of Abseil, and the headers of which one declares them.
_LIBRARY = {
    "std::vector": "vector", "std::string": "string", "std::map": "map", "std::set": "set", "std::deque": "deque",
    "std::optional": "optional", "std::nullopt": "optional", "std::function": "functional", "std::tuple": "tuple",
    "std::array": "array", "std::thread": "thread", "std::atomic": "atomic", "std::variant": "variant",
    "std::unique_ptr": "memory", "std::shared_ptr": "memory", "std::make_unique": "memory",
    "std::make_shared": "memory", "std::sort": "algorithm", "std::find_if": "algorithm", "std::any_of": "algorithm",
    "std::all_of": "algorithm", "std::accumulate": "numeric", "std::numeric_limits": "limits",
    "std::ostream": "ostream iosfwd", "std::ifstream": "fstream", "std::ofstream": "fstream",
    "std::filesystem": "filesystem", "std::clamp": "algorithm", "std::partial_sort": "algorithm",
    "std::stable_sort": "algorithm", "std::chrono": "chrono", "std::bitset": "bitset", "std::barrier": "barrier",
    "absl::StrCat": "absl/strings/str_cat.h", "absl::StrAppend": "absl/strings/str_cat.h",
    "absl::StrJoin": "absl/strings/str_join.h", "absl::StrSplit": "absl/strings/str_split.h",
    "absl::StrFormat": "absl/strings/str_format.h", "absl::StrContains": "absl/strings/match.h",
    "absl::StartsWith": "absl/strings/match.h", "absl::EndsWith": "absl/strings/match.h",
    "absl::SimpleAtoi": "absl/strings/numbers.h", "absl::Span": "absl/types/span.h",
    "absl::Status": "absl/status/status.h", "absl::StatusOr": "absl/status/statusor.h",
    "absl::InlinedVector": "absl/container/inlined_vector.h",
    "absl::flat_hash_map": "absl/container/flat_hash_map.h", "absl::flat_hash_set": "absl/container/flat_hash_set.h",
    "absl::FunctionRef": "absl/functional/function_ref.h", "absl::AnyInvocable": "absl/functional/any_invocable.h",
    "absl::Duration": "absl/time/time.h", "absl::Now": "absl/time/clock.h", "absl::SleepFor": "absl/time/clock.h",
    "absl::Mutex": "absl/synchronization/mutex.h", "absl::Notification": "absl/synchronization/notification.h",
    "absl::string_view": "absl/strings/string_view.h", "absl::StrReplaceAll": "absl/strings/str_replace.h",
}
_INTERESTING = frozenset(" ".join(_LIBRARY.values()).split())
_QUALIFIED = re.compile(r"\b(?:std|absl)::\w+")
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
_SYSTEM = [*sorted(glob.glob("/usr/include/c++/*")), *sorted(glob.glob("/usr/include/x86_64-linux-gnu/c++/*")),
           "/usr/include"]


@functools.lru_cache(maxsize=None)
def _included_by_system(header):
    for folder in _SYSTEM:
        path = os.path.join(folder, header)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                return tuple(_INCLUDE.findall(file.read()))
    return ()


@functools.lru_cache(maxsize=None)
def _library_through(header):
    """The headers of _LIBRARY that a header of the system leads to."""
    return reachable({header}, _included_by_system) & _INTERESTING


def _declared(matches):
    return {next(filter(None, match.groups()), None) for match in matches} - {None}


def _owners(codes, protos):
    """{name: header} of the names that one header alone declares, its source aside."""
    places = collections.defaultdict(set)
    for path, code in (codes | protos).items():
        for name in _declared(_ANYWHERE.finditer(code)):
            places[name].add(path)
    return {name: path for path, code in codes.items() if path.endswith(".h")
            for name in _declared(_OF_A_NAMESPACE.finditer(code)) if places[name] <= {path, path[:-2] + ".cc"}}


def _uses(code):
    return set(_USE.findall(_MACRO.sub("", code))) - set(_BROUGHT.findall(code))


def check(tree):
    codes = {path: tree.code(path) for path in tree.with_suffix(".h", ".cc")}
    owners = _owners(codes, {path: tree.text(path) for path in tree.with_suffix(".proto")})
    includes = {path: _INCLUDE.findall(tree.text(path)) for path in codes}
    own = {path: [header for header in headers if header in codes] for path, headers in includes.items()}
    library = {path: set().union(*(_library_through(header) for header in headers if header not in codes))
               for path, headers in includes.items()}
    problems = []
    for path, code in codes.items():
        project = reachable({path}, own.__getitem__)
        problems += [f"{path}: uses {name}, and no include leads to {owners[name]}"
                     for name in sorted(_uses(code) & owners.keys()) if owners[name] not in project]
        there = set().union(*(library[header] for header in project))
        problems += [f"{path}: uses {name}, and no include leads to <{_LIBRARY[name]}>"
                     for name in sorted(set(_QUALIFIED.findall(code)) & _LIBRARY.keys())
                     if not there & set(_LIBRARY[name].split())]
    return problems
