// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/model_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/narrow_floats.h"
#include "engine/onnx/file/model_splices.h"
#include "engine/onnx/file/new_file.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kCopiedAtOnce = int64_t{1} << 20;

std::string FolderWithSlash(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code missing;
  return std::filesystem::equivalent(a, b, missing);
}

absl::Status CheckFilesUnchanged(const ModelFiles& files) {
  absl::Status status = files.model->CheckUnchanged();
  for (const auto& [location, source] : files.external) status.Update(source->CheckUnchanged());
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("'", files.path, "' or its external data was written to since it was opened"));
}

template <typename Element, typename Convert>
absl::Status AppendAs(absl::Span<const float> numbers, NewFile* file, Convert convert) {
  std::vector<Element> piece;
  constexpr size_t kPiece = kCopiedAtOnce / sizeof(Element);
  for (size_t at = 0; at < numbers.size(); at += kPiece) {
    piece.clear();
    for (float number : numbers.subspan(at, kPiece)) piece.push_back(convert(number));
    ABSL_RETURN_IF_ERROR(
        file->Append(piece.data(), static_cast<int64_t>(piece.size() * sizeof(Element))));
  }
  return absl::OkStatus();
}

absl::Status AppendNumbers(const Splice& splice, NewFile* file) {
  switch (splice.type) {
    case DataType::kF64:
      return AppendAs<double>(splice.numbers, file, [](float number) { return double{number}; });
    case DataType::kF16:
    case DataType::kBf16:
      return AppendAs<uint16_t>(splice.numbers, file,
                                [&](float number) { return NarrowAs(splice.type, number); });
    default:
      return file->Append(splice.numbers.data(),
                          static_cast<int64_t>(splice.numbers.size() * sizeof(float)));
  }
}

absl::Status CopyBytes(const ByteSource& source, int64_t begin, int64_t end, NewFile* file) {
  std::string piece(std::min(kCopiedAtOnce, end - begin), '\0');
  for (int64_t at = begin; at < end; at += kCopiedAtOnce) {
    const int64_t count = std::min(kCopiedAtOnce, end - at);
    ABSL_RETURN_IF_ERROR(source.Read(at, count, piece.data()));
    ABSL_RETURN_IF_ERROR(file->Append(piece.data(), count));
  }
  return absl::OkStatus();
}

absl::Status WriteSpliced(const ByteSource& source, absl::Span<const Splice> splices,
                          NewFile* file) {
  int64_t at = 0;
  for (const Splice& splice : splices) {
    ABSL_RETURN_IF_ERROR(CopyBytes(source, at, splice.begin, file));
    ABSL_RETURN_IF_ERROR(
        file->Append(splice.bytes.data(), static_cast<int64_t>(splice.bytes.size())));
    ABSL_RETURN_IF_ERROR(AppendNumbers(splice, file));
    at = splice.end;
  }
  ABSL_RETURN_IF_ERROR(CopyBytes(source, at, source.size(), file));
  return file->Finish();
}

// Folders that are made for external data, and removed again unless they are kept.
class NewFolders {
 public:
  ~NewFolders() {
    for (; !made_.empty(); made_.pop_back()) rmdir(made_.back().c_str());
  }
  // Makes the folders of `location` below `folder`.
  absl::Status Make(const std::string& folder, const std::string& location) {
    for (size_t slash = location.find('/'); slash != std::string::npos;
         slash = location.find('/', slash + 1)) {
      const std::string path = folder + location.substr(0, slash);
      if (mkdir(path.c_str(), 0777) == 0) {
        made_.push_back(path);
      } else if (errno != EEXIST) {
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder '", path, "'"));
      }
    }
    return absl::OkStatus();
  }
  void Keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

// Files of external data come first: a reader that finds the model's file finds them, too.
absl::Status PublishAll(std::vector<NewFile>* external, NewFile* model) {
  absl::Status status;
  size_t published = 0;
  for (; status.ok() && published < external->size(); ++published)
    status = (*external)[published].Publish(/*replaces=*/false);
  if (status.ok()) status = model->Publish(/*replaces=*/true);
  if (status.ok()) return status;
  for (NewFile& file : *external) file.Withdraw();
  return status;
}

}  // namespace

// The new files must not be those of the model, and not each other, and what they replace can be
// replaced.
absl::Status CheckPlaces(const ModelFiles& files, const std::string& path) {
  const std::string old_folder = FolderWithSlash(files.path), new_folder = FolderWithSlash(path);
  if (IsSameFile(path, files.path))
    return InvalidArgument("'", path, "' is the file that the model was read from");
  ABSL_RETURN_IF_ERROR(NewFile::CheckPlace(path));
  for (const auto& [location, source] : files.external) {
    const std::string beside = new_folder + location;
    if (IsSameFile(path, old_folder + location) || beside == path)
      return InvalidArgument("'", path, "' is a place of external data");
    std::error_code missing;
    if (!std::filesystem::exists(beside, missing)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("the model keeps weights in a file of their own, '", location,
                     "', and there is one at '", beside, "': choose a folder without it"));
  }
  return absl::OkStatus();
}

absl::Status WriteModelFile(const ModelFiles& files, const std::string& path,
                            absl::Span<const NewElements> changed, const Metadata& added) {
  ABSL_RETURN_IF_ERROR(CheckFilesUnchanged(files));
  ABSL_RETURN_IF_ERROR(CheckPlaces(files, path));
  ABSL_ASSIGN_OR_RETURN(const Splices splices, FindSplices(files, changed, added));
  NewFolders folders;
  std::vector<NewFile> external;
  external.reserve(files.external.size());
  for (const auto& [location, source] : files.external) {
    ABSL_RETURN_IF_ERROR(folders.Make(FolderWithSlash(path), location));
    ABSL_ASSIGN_OR_RETURN(NewFile file, NewFile::Create(FolderWithSlash(path) + location));
    external.push_back(std::move(file));
    const auto found = splices.external.find(location);
    ABSL_RETURN_IF_ERROR(WriteSpliced(
        *source, found == splices.external.end() ? absl::Span<const Splice>() : found->second,
        &external.back()));
  }
  ABSL_ASSIGN_OR_RETURN(NewFile model, NewFile::Create(path));
  ABSL_RETURN_IF_ERROR(WriteSpliced(*files.model, splices.model, &model));
  ABSL_RETURN_IF_ERROR(CheckFilesUnchanged(files));
  ABSL_RETURN_IF_ERROR(PublishAll(&external, &model));
  folders.Keep();
  return absl::OkStatus();
}

}  // namespace tilewire::reader
