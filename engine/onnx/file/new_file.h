// SPDX-License-Identifier: Apache-2.0
//
// A file that comes to its place only once it is whole: it is written under another name in the
// same folder, brought to the disk, and renamed. Thread-compatible.
#ifndef ENGINE_ONNX_FILE_NEW_FILE_H_
#define ENGINE_ONNX_FILE_NEW_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilewire::reader {

// Errors of all functions, with the path:
//   kInvalidArgument    a folder that does not exist; a path that is a folder, a device or whatever
//                       else is there and is not a regular file
//   kResourceExhausted  no space, or a file larger than this process may write
//   kPermissionDenied   the folder takes no files from this process
//   kFailedPrecondition what is there is a mount point, which no rename replaces
//   kUnavailable        whatever else the system says
class NewFile {
 public:
  static absl::StatusOr<NewFile> Create(const std::string& path);
  // Whether what is at `path`, if anything, can be replaced by a file. Create() asks for it, too;
  // this is for before a long work.
  static absl::Status CheckPlace(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  // Removes the file, unless it is in its place.
  ~NewFile();

  // Permissions other than those of all new files; before the first byte, which others might read.
  absl::Status SetMode(mode_t mode);
  absl::Status Append(const void* bytes, int64_t count);
  // Brings all bytes to the disk.
  absl::Status Finish();
  // Puts the finished file in its place. What is there is replaced if `replaces`; else that is
  // kAlreadyExists.
  absl::Status Publish(bool replaces);
  // Removes the published file again.
  void Withdraw();

 private:
  NewFile(int descriptor, std::string path, std::string written);
  absl::Status Error(int error) const;

  int descriptor_;
  std::string path_, written_;  // an empty `written_`: published
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_NEW_FILE_H_
