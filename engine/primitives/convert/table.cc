// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/convert/convert.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace convert {
namespace {

absl::Status Validate(const ConvertDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("convert", desc.src, desc.dst));
  if (desc.via.size() > kMostConversionsBetween) {
    return InvalidArgument("convert: ", desc.via.size(), " types between; at most ",
                           kMostConversionsBetween, " are allowed");
  }
  return CheckSameDims("convert: src", desc.src, "dst", desc.dst);
}

}  // namespace
}  // namespace convert

std::vector<ConvertDesc> ConvertProbes(DataType type) {
  return {ConvertDesc{probes::Tagged({40, 32}, type, "nc"), probes::Any({40, 32}, DataType::kS64)}};
}

TILEWIRE_DEFINE_PRIMITIVE(Convert, convert,
                          {kAvx512AndAvx2,
                           {{"vectors", ResolveVectors, CreateVectors, {.takes_all_types = true}}}},
                          {kAnyCpu, {{"dense", ResolveDense, CreateDense}}});

}  // namespace tilewire
