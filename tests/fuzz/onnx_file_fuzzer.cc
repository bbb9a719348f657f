// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file, from its bytes to a graph whose constants are folded. External data is refused, so
// that nothing else is read.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/graph_builder.h"
#include "engine/onnx/specialization.h"

namespace tilewire::reader {
namespace {

// A few bytes may ask for a constant of 16 million elements, the most that is folded; a fuzzer that
// found this would do little else. Of inputs that ask for many, one in kRareFolds is folded.
constexpr int64_t kMostElements = 1 << 12;
constexpr uint8_t kRareFolds = 128;

// Shapes come from constants of integers; true if one of these describes many elements.
bool FoldsMuch(const ModelGraph& graph) {
  for (const network::ConstantPtr& constant : graph.initializers) {
    if (constant == nullptr || constant->is_float) continue;
    int64_t elements = 1;
    for (const int64_t dim : constant->ints) {
      if (dim > kMostElements) return true;
      elements *= std::max<int64_t>(dim, 1);
      if (elements > kMostElements) return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace tilewire::reader

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tilewire::reader;
  const MemorySource source(absl::string_view(reinterpret_cast<const char*>(bytes), size));
  absl::StatusOr<OnnxFile> file = ReadOnnxFile(source, "");
  if (!file.ok()) return 0;
  const absl::StatusOr<ModelGraph> graph = BuildModelGraph(*std::move(file));
  if (!graph.ok()) return 0;
  uint8_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += bytes[i];
  if (!FoldsMuch(*graph) || sum % kRareFolds == 0) FoldConstants(*graph).IgnoreError();
  return 0;
}
