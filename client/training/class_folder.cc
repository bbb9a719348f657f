// SPDX-License-Identifier: Apache-2.0
#include "client/training/class_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

struct FolderEntry {
  std::string name;
  bool is_folder = false;
};

// By name, without hidden ones.
absl::StatusOr<std::vector<FolderEntry>> ListFolder(const std::filesystem::path& folder) {
  std::vector<FolderEntry> entries;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error), end;
  while (!error && at != end) {
    const std::string name = at->path().filename().string();
    if (!absl::StartsWith(name, ".")) entries.push_back({name, at->is_directory()});
    at.increment(error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read '", folder.string(), "'"));
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
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
      found.pictures.push_back({file, static_cast<int64_t>(found.classes.size())});
    }
    found.classes.push_back(one.name);
  }
  return found;
}

}  // namespace tilewire::client
