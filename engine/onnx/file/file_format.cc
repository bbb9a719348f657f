// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/file_format.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

// Bytes at an offset, the format that has them there, and what to do.
struct Format {
  size_t offset;
  absl::string_view bytes;
  absl::string_view name;
  absl::string_view advice;
};

constexpr absl::string_view kFromTorch =
    "export it with torch.onnx.export(model, args, 'model.onnx')";
constexpr absl::string_view kFromKeras = "convert it with python -m tf2onnx.convert --keras";
constexpr absl::string_view kPickle = "a Python pickle, as PyTorch and scikit-learn write it";
constexpr absl::string_view kPicture = "give a model; tilewire infer sends pictures to one";
constexpr absl::string_view kUnpack = "unpack it and give the .onnx file that it holds";

// The known formats; the first that fits holds.
constexpr Format kFormats[] = {
    {0, "version https://git-lfs", "a git-LFS pointer, which stands for the file",
     "fetch the file itself with git lfs pull"},
    {4, "TFL3", "TensorFlow Lite", "convert it with python -m tf2onnx.convert --tflite"},
    {4, "ORTM", "ONNX Runtime's ORT format", "give the .onnx file that it was made from"},
    {8, "{\"", "safetensors, which holds weights without a network", kFromTorch},
    {0, "GGUF", "GGUF, a format of language models", "serve it with what reads GGUF"},
    {0, "\x89HDF", "HDF5, as Keras writes it", kFromKeras},
    {0, "\x1f\x8b", "a gzip archive", kUnpack},
    {0,
     "\xfd"
     "7zXZ",
     "an xz archive", kUnpack},
    {0, "\x80\x02", kPickle, kFromTorch},
    {0, "\x80\x03", kPickle, kFromTorch},
    {0, "\x80\x04", kPickle, kFromTorch},
    {0, "\x80\x05", kPickle, kFromTorch},
    {0, "\x89PNG", "a PNG picture", kPicture},
    {0, "\xff\xd8\xff", "a JPEG picture", kPicture},
    {0, "GIF8", "a GIF picture", kPicture},
    {0, "%PDF", "a PDF document", "give a model"},
    {0, "\x93NUMPY", "a numpy array", "give a model"},
    {0, "ftrt", "a TensorRT engine", "give the .onnx file that it was built from"},
    {0, "ptrt", "a TensorRT engine", "give the .onnx file that it was built from"},
    {0, "7767517", "ncnn", "give the .onnx file that it was converted from"},
    {0, "<?xml", "XML, as OpenVINO writes it", "give the .onnx file that it was converted from"},
    {0, "<!doctype html", "a web page", "download the file again by its direct address"},
    {0, "<html", "a web page", "download the file again by its direct address"},
    {0, "{", "JSON", "give the .onnx file of the model"},
};

// Zip archives differ in the names of what they hold; the first is in sight.
Format ZipFormat(absl::string_view begin) {
  if (absl::StrContains(begin, "data.pkl") || absl::StrContains(begin, "archive/") ||
      absl::StrContains(begin, "constants.pkl"))
    return {0, "", "a PyTorch file of weights or TorchScript", kFromTorch};
  if (absl::StrContains(begin, "metadata.json")) return {0, "", "Keras", kFromKeras};
  return {0, "", "a zip archive", kUnpack};
}

// A SavedModel is a protobuf message too: its version, 1, and then its graphs.
constexpr absl::string_view kSavedModel = "\x08\x01\x12";

}  // namespace

absl::Status NamedByFormat(const absl::Status& error, const ByteSource& file) {
  std::string begin(std::min<int64_t>(file.size(), 512), '\0');
  if (!file.Read(0, static_cast<int64_t>(begin.size()), begin.data()).ok()) return error;
  const auto named = [](const Format& format) {
    return InvalidArgument("not an ONNX file: this is ", format.name, "; ", format.advice);
  };
  if (absl::StartsWith(begin, "PK\x03\x04")) return named(ZipFormat(begin));
  const std::string lower = absl::AsciiStrToLower(begin);
  for (const Format& format : kFormats) {
    const absl::string_view text = format.bytes[0] == '<' ? lower : begin;
    if (format.offset < text.size() && absl::StartsWith(text.substr(format.offset), format.bytes))
      return named(format);
  }
  if (absl::StartsWith(begin, kSavedModel) && absl::StrContains(begin, "serve"))
    return named({0, "", "a TensorFlow SavedModel",
                  "convert its folder with python -m tf2onnx.convert --saved-model"});
  return error;
}

}  // namespace tilewire::reader
