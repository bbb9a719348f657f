// SPDX-License-Identifier: Apache-2.0
//
// Bytes at offsets: a file on disk or a string in memory. A file is read, never mapped: if it is
// truncated meanwhile, a read returns a status where a mapping would raise a signal. Immutable: any
// number of threads may read at once.
#ifndef ENGINE_ONNX_FILE_BYTE_SOURCE_H_
#define ENGINE_ONNX_FILE_BYTE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire::reader {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  // kInvalidArgument  the range leaves the source, or the file became shorter
  virtual absl::Status Read(int64_t offset, int64_t count, void* dst) const = 0;
  // By size and times; that of the last change of status cannot be set back.
  // kInvalidArgument  the file was written to, renamed or given other rights since it was opened
  virtual absl::Status CheckUnchanged() const = 0;
  // Returns this source for later reads, or null if the bytes may be gone by then.
  virtual std::shared_ptr<const ByteSource> Keep() const = 0;
};

// `bytes` must outlive the source.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(absl::string_view bytes) : bytes_(bytes) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, int64_t count, void* dst) const override;
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  std::shared_ptr<const ByteSource> Keep() const override { return nullptr; }

 private:
  absl::string_view bytes_;
};

// Bytes in memory that can be kept: as long as one source of them is.
std::shared_ptr<const ByteSource> KeptBytes(std::string bytes);

//   kNotFound         no such file, or no right to read it
//   kInvalidArgument  not a regular file
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(const std::string& path);

// A file beside another one (ONNX's external data): `location` is relative to the folder of
// `beside`.
//   kNotFound         no such file
//   kInvalidArgument  an absolute path, a `..`, a symbolic link on the way, a file with a second
//                     hard link, or anything but a regular file: each would let a model read what
//                     is not part of it
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFileBeside(const std::string& beside,
                                                                 absl::string_view location);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_BYTE_SOURCE_H_
