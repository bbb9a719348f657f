// SPDX-License-Identifier: Apache-2.0
//
// Files of models that clients send, on disk: each upload in a fresh folder, below one that belongs
// to this process and goes with it. What a process that was killed has left is removed by the next
// one that starts on the same folder. Thread-compatible.
#ifndef SERVICE_MODELS_UPLOADS_UPLOAD_FOLDER_H_
#define SERVICE_MODELS_UPLOADS_UPLOAD_FOLDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "service/models/model_control.h"

namespace tilewire::service {

class UploadFolder {
 public:
  // `folder` is there; all that lies below it at once has `most_bytes` at most.
  //   kNotFound          no such folder, or it is not one
  //   kInvalidArgument   it is a link
  //   kPermissionDenied  this user may not write there
  static absl::StatusOr<std::unique_ptr<UploadFolder>> Open(const std::string& folder,
                                                            int64_t most_bytes);
  ~UploadFolder();  // removes all of it
  UploadFolder(const UploadFolder&) = delete;

  int64_t most_bytes() const { return most_bytes_; }

  // Writes the files into a fresh folder, <version>/<name> each, and returns its path. Nothing is
  // left of what fails.
  //   kResourceExhausted  more than `most_bytes`, or the disk is full
  //   kInternal           another error of the system
  absl::StatusOr<std::string> Write(const std::vector<UploadedFile>& files);
  // Removes what Write() returned.
  void Remove(const std::string& path);

 private:
  UploadFolder(std::string path, int lock, int64_t most_bytes)
      : path_(std::move(path)), lock_(lock), most_bytes_(most_bytes) {}

  const std::string path_;  // of this process
  const int lock_;          // a descriptor, which tells other processes that the folder is in use
  const int64_t most_bytes_;
  std::map<std::string, int64_t> bytes_;  // of each upload that is there
  int64_t next_ = 1;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_UPLOADS_UPLOAD_FOLDER_H_
