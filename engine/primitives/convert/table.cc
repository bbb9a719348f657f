// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convert/convert.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"

namespace tilewire {
namespace convert {
namespace {

absl::Status Validate(const ConvertDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("convert", desc.src, desc.dst));
  if (desc.via.size() > kMostConversionsBetween) {
    return absl::InvalidArgumentError(absl::StrCat("convert: ", desc.via.size(),
                                                   " types between; at most ",
                                                   kMostConversionsBetween, " are allowed"));
  }
  return CheckSameDims("convert: src", desc.src, "dst", desc.dst);
}

}  // namespace
}  // namespace convert

TILEWIRE_DEFINE_PRIMITIVE(Convert, convert,
                          {{"convert/avx512_vectors", cpu::Isa::kAvx512, {.takes_all_types = true}},
                           ResolveVectors,
                           CreateVectors},
                          {{"convert/avx2_vectors", cpu::Isa::kAvx2, {.takes_all_types = true}},
                           ResolveVectors,
                           CreateVectors},
                          {{"convert/dense", cpu::Isa::kBaseline}, ResolveDense, CreateDense},
                          {{"convert/reference", cpu::Isa::kBaseline, {.is_reference = true}},
                           ResolveReference,
                           CreateReference});

}  // namespace tilewire
