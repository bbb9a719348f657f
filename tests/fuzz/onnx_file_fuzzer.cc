// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file, from its bytes to a graph whose constants are folded. External data is refused, so
// that nothing else is read.
#include <cstdint>
#include <utility>

#include "engine/graph/byte_source.h"
#include "engine/graph/model_graph.h"
#include "engine/graph/onnx_file.h"
#include "engine/graph/specialization.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tilewire::graph;
  const MemorySource source(absl::string_view(reinterpret_cast<const char*>(bytes), size));
  absl::StatusOr<OnnxFile> file = ReadOnnxFile(source, "");
  if (!file.ok()) return 0;
  const absl::StatusOr<ModelGraph> graph = BuildModelGraph(*std::move(file));
  if (graph.ok()) FoldConstants(*graph).IgnoreError();
  return 0;
}
