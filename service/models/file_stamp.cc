// SPDX-License-Identifier: Apache-2.0
#include "service/models/file_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "engine/engine.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 1000;

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

void Add(const std::string& path, FileStamp* stamp) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  stamp->emplace_back(path, status.st_dev, status.st_ino, status.st_size,
                      Nanoseconds(status.st_mtim), Nanoseconds(status.st_ctim));
}

// Adds the files in `folder`, and, if `deep`, those in the folders below it.
void AddFolder(const fs::path& folder, bool deep, FileStamp* stamp) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end && stamp->size() < kMostFiles; it.increment(error)) {
    if (!deep) it.disable_recursion_pending();
    Add(it->path().string(), stamp);
  }
}

}  // namespace

FileStamp StampOf(const ServedModel& served) {
  FileStamp stamp;
  if (served.folder.empty()) {
    Add(served.path, &stamp);
    Add(served.labels_path, &stamp);
    Add((fs::path(served.path).parent_path() / std::string(kTuningFile)).string(), &stamp);
    return stamp;
  }
  if (served.settings_folder != served.folder)
    AddFolder(served.settings_folder, /*deep=*/false, &stamp);
  AddFolder(served.folder, /*deep=*/true, &stamp);
  std::sort(stamp.begin(), stamp.end());
  return stamp;
}

int64_t SizeOf(const FileStamp& stamp) {
  int64_t bytes = 0;
  for (const auto& file : stamp) bytes += std::get<3>(file);
  return bytes;
}

}  // namespace tilewire::service
