// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/select/implementations.h"
#include "engine/primitives/select/select.h"

namespace tilewire {
namespace select {
namespace {

// The indices of the run are in [0, size), or there are none.
bool IsInside(const IndexRun& run, int64_t size) {
  if (run.start < 0 || run.count == 0) return true;
  const std::optional<int64_t> way = CheckedMul(run.count - 1, run.step);
  const std::optional<int64_t> last = way ? CheckedAdd(run.start, *way) : std::nullopt;
  return run.start < size && last && *last >= 0 && *last < size;
}

absl::Status ValidateDimension(const SelectDesc& desc, int d) {
  const int64_t src_size = desc.src.dim(d), dst_size = desc.dst.dim(d);
  std::optional<int64_t> count = desc.from[d].empty() ? src_size : 0;
  for (const IndexRun& run : desc.from[d]) {
    if (run.count < 0 || !IsInside(run, src_size)) {
      return InvalidArgument("select: dimension ", d, ": ", run.count, " indices from ", run.start,
                             " on, ", run.step, " apart, of a source of ", src_size);
    }
    count = count ? CheckedAdd(*count, run.count) : count;
  }
  if (count == dst_size) return absl::OkStatus();
  return InvalidArgument("select: dimension ", d, ": the indices of ", src_size,
                         " elements do not make the ", dst_size, " of dst");
}

absl::Status Validate(const SelectDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("select", desc.src, desc.dst));
  if (desc.src.rank() != desc.dst.rank() || desc.src.data_type() != desc.dst.data_type()) {
    return InvalidArgument("select: src is ", desc.src.ToString(), ", dst ", desc.dst.ToString());
  }
  if (static_cast<int>(desc.from.size()) != desc.dst.rank()) {
    return InvalidArgument("select: ", desc.from.size(), " lists of indices for rank ",
                           desc.dst.rank());
  }
  for (int d = 0; d < desc.dst.rank(); ++d) ABSL_RETURN_IF_ERROR(ValidateDimension(desc, d));
  uint64_t element = 0;
  StoreElement(desc.dst.data_type(), desc.fill, &element, 0);
  const float held = LoadElement(desc.dst.data_type(), &element, 0);
  if (held == desc.fill || held != held) return absl::OkStatus();
  return InvalidArgument("select: ", DataTypeName(desc.dst.data_type()), " does not hold the fill ",
                         desc.fill);
}

}  // namespace

std::vector<int64_t> SourceIndices(const SelectDesc& desc, int d) {
  std::vector<int64_t> indices;
  indices.reserve(desc.dst.dim(d));
  for (const IndexRun& run : desc.from[d]) {
    for (int64_t i = 0; i < run.count; ++i)
      indices.push_back(run.start < 0 ? kFill : run.start + i * run.step);
  }
  for (int64_t i = 0; desc.from[d].empty() && i < desc.src.dim(d); ++i) indices.push_back(i);
  return indices;
}

}  // namespace select

std::vector<SelectDesc> SelectProbes(DataType type) {
  std::vector<SelectDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(SelectDesc{probes::Tagged({2, 32, 8, 8}, type, tag),
                               probes::Tagged({2, 10, 8, 9}, type, tag),
                               {{}, {{3, 1, 10}}, {}, {{0, 1, 8}, {-1, 1, 1}}}});
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(Select, select, {kAnyCpu, {{"run_copy", ResolveRunCopy, CreateRunCopy}}});

}  // namespace tilewire
