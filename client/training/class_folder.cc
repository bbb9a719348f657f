// SPDX-License-Identifier: Apache-2.0
#include "client/training/class_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

struct FolderEntry {
  std::string name;
  bool is_folder = false, is_file = false;
};

bool IsNumber(absl::string_view name) {
  return !name.empty() && name.size() <= 18 && absl::c_all_of(name, absl::ascii_isdigit);
}

// Numbers by their size where all names are numbers; else by name, byte by byte.
void Sort(std::vector<FolderEntry>* entries) {
  const bool are_numbers =
      absl::c_all_of(*entries, [](const FolderEntry& entry) { return IsNumber(entry.name); });
  absl::c_sort(*entries, [&](const FolderEntry& a, const FolderEntry& b) {
    if (!are_numbers) return a.name < b.name;
    return std::pair(std::stoll(a.name), a.name) < std::pair(std::stoll(b.name), b.name);
  });
}

// Sorted, without hidden ones.
absl::StatusOr<std::vector<FolderEntry>> ListFolder(const std::filesystem::path& folder) {
  std::vector<FolderEntry> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error), end;
  while (!error && at != end) {
    const std::string name = at->path().filename().string();
    if (!absl::StartsWith(name, "."))
      entries.push_back({name, at->is_directory(), at->is_regular_file()});
    at.increment(error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read '", folder.string(), "'"));
  }
  Sort(&entries);
  return entries;
}

}  // namespace

absl::StatusOr<ClassFolder> ListClassFolder(const std::string& path) {
  const std::filesystem::path root(path);
  const auto classes = ListFolder(root);
  if (!classes.ok()) return classes.status();
  if (classes->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is empty; it must have a folder of pictures for each class"));
  }
  ClassFolder found;
  for (const FolderEntry& one : *classes) {
    const std::filesystem::path folder = root / one.name;
    if (!one.is_folder) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", folder.string(), "' is not a folder; each class is one"));
    }
    const auto pictures = ListFolder(folder);
    if (!pictures.ok()) return pictures.status();
    if (pictures->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the class folder '", folder.string(), "' has no picture"));
    }
    for (const FolderEntry& picture : *pictures) {
      const std::string file = (folder / picture.name).string();
      if (picture.is_folder) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", file, "' is a folder within a class; pictures lie in the class itself"));
      }
      if (!picture.is_file)
        return absl::InvalidArgumentError(absl::StrCat("'", file, "' is not a regular file"));
      found.pictures.push_back({file, static_cast<int64_t>(found.classes.size())});
    }
    found.classes.push_back(one.name);
  }
  return found;
}

}  // namespace tilewire::client
