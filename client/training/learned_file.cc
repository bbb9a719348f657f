// SPDX-License-Identifier: Apache-2.0
#include "client/training/learned_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

// Why what was learned is worth nothing; OK if it may be worth something.
absl::Status CheckLearned(const TrainingRecord& record) {
  const int64_t updates = record.updates(), last = record.skipped_at_end();
  constexpr absl::string_view kWhy = "skipped, because a loss or a gradient was not finite";
  if (record.skipped() == updates) {
    return absl::FailedPreconditionError(
        absl::StrCat("every update, ", updates, " in all, was ", kWhy, ": nothing was learned"));
  }
  if (2 * last >= updates) {
    return absl::FailedPreconditionError(
        absl::StrCat("the last ", CountText(last, "update"), " of ", updates, " were ", kWhy,
                     ": the updates before have ruined the parameters; a smaller --lr helps"));
  }
  const auto held_out = record.held_out();
  if (!held_out || std::isfinite(held_out->loss) || !std::isfinite(record.before->loss))
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the held-out loss is no longer finite: the updates have ruined the parameters; a smaller "
      "--lr helps");
}

// Returns the path of the file, in a folder of its own.
absl::StatusOr<std::string> WriteToTemporary(const Trainer& trainer, const std::string& path) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "tilewire-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no folder of temporary files: ",
                     error ? error.message() : absl::StrCat(folder, ": ", std::strerror(errno))));
  }
  const std::string file = (folder / std::filesystem::path(path).filename()).string();
  const absl::Status written = trainer.WriteModel(file);
  if (written.ok()) return file;
  rmdir(folder.c_str());
  return written;
}

}  // namespace

LearnedFile WriteLearned(const Trainer& trainer, const TrainingRecord& record,
                         const std::string& path) {
  if (!record.failure.ok() || record.updates() == 0) return {"", record.failure};
  if (absl::Status learned = CheckLearned(record); !learned.ok()) return {"", learned};
  const absl::Status written = trainer.WriteModel(path);
  if (written.ok()) return {path, absl::OkStatus()};
  const auto elsewhere = WriteToTemporary(trainer, path);
  if (elsewhere.ok()) return {*elsewhere, written};
  return {"", absl::Status(written.code(), absl::StrCat(written.message(), "; nor elsewhere: ",
                                                        elsewhere.status().message()))};
}

}  // namespace tilewire::client
