// SPDX-License-Identifier: Apache-2.0
//
// Which row each convolution of the benchmarks' lists takes, on every instruction set of one
// machine, that with matrix tiles on one that has them: a table, choices.txt, that a change of a
// cost may not change unnoticed. Rows are created, not run, and the machine is given, so that the
// CPU at hand does not matter.
//
// Where it differs, the whole table as it is now is written to choices.txt among the outputs of the
// test (TEST_UNDECLARED_OUTPUTS_DIR).
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/shape_list.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/convolution/tile_machine.h"

namespace tilewire::testing {
namespace {

constexpr const char* kLists[] = {"resnet50", "vgg16", "depthwise"};
constexpr cpu::Isa kSets[] = {cpu::Isa::kAvx2,       cpu::Isa::kAvx2Vnni,   cpu::Isa::kAvx512,
                              cpu::Isa::kAvx512Vnni, cpu::Isa::kAvx512Bf16, cpu::Isa::kAmx};

// How a shape is asked for.
struct Kind {
  const char* name;
  DataType type = DataType::kF32;  // of src and dst
  Precision precision = Precision::kExact;
  bool pools = false;
  const char* layout = "";  // of src and dst
  PropKind prop_kind = PropKind::kForwardInference;
};

constexpr Kind kKinds[] = {
    {"exact"},
    {"fast", DataType::kF32, Precision::kFast},
    {"bf16", DataType::kF32, Precision::kBf16},
    {"bf16_tensors", DataType::kBf16, Precision::kBf16},
    {"u8s8", DataType::kU8},
    {"pooled", DataType::kF32, Precision::kExact, true},
    {"pooled_fast", DataType::kF32, Precision::kFast, true},
    {"nchw", DataType::kF32, Precision::kExact, false, "abcd"},
    {"nhwc", DataType::kF32, Precision::kExact, false, "acdb"},
    {"nhwc_bf16", DataType::kF32, Precision::kBf16, false, "acdb"},
};

// Training does without F(4x4) where nothing asks for it.
constexpr Kind kTraining = {.name = "training", .prop_kind = PropKind::kForwardTraining};

MemoryDesc Open(const MemoryDesc& desc, DataType type) {
  return *MemoryDesc::CreateAny(desc.dims(), type);
}

ConvolutionDesc DescFor(const bench::Shape& shape, const Kind& kind) {
  const ConvolutionCase one =
      Case("", {shape.batch, shape.ic, shape.in, shape.in}, shape.oc, {shape.kernel, shape.kernel},
           {.groups = shape.groups,
            .strides = {shape.stride, shape.stride},
            .left = {shape.padding, shape.padding}});
  ConvolutionDesc desc = DescOf(one, kind.layout, kind.layout);
  desc.prop_kind = kind.prop_kind;
  if (kind.type == DataType::kF32) return desc;
  desc.src = Open(desc.src, kind.type);
  desc.dst = Open(desc.dst, kind.type);
  if (kind.type == DataType::kU8) desc.weights = Open(desc.weights, DataType::kS8);
  return desc;
}

Attributes AttributesFor(const Kind& kind) {
  Attributes attributes = AttributesOf({EltwisePostOp{}});
  attributes.precision = kind.precision;
  if (kind.pools) (void)attributes.post_ops.Append(MaxPoolingPostOp{});
  return attributes;
}

// The row without its primitive's name, or "none".
std::string ChosenRow(const ConvolutionDesc& desc, const Attributes& attributes, cpu::Isa isa) {
  const cpu::Machine machine = isa == cpu::Isa::kAmx ? MachineWithTiles() : cpu::Machine{};
  const auto primitive = CreateConvolution(desc, attributes, {.max_isa = isa, .machine = machine});
  if (!primitive.ok()) return "none";
  return std::string(absl::StripPrefix((*primitive)->name(), "convolution/"));
}

// "list/name kind row row ...", a row for each set; = where it is that of the set before.
std::string LineOf(const std::string& list, const bench::Shape& shape, const Kind& kind) {
  const ConvolutionDesc desc = DescFor(shape, kind);
  const Attributes attributes = AttributesFor(kind);
  std::vector<std::string> fields = {absl::StrCat(list, "/", shape.name), kind.name};
  std::string before;
  for (const cpu::Isa isa : kSets) {
    const std::string row = ChosenRow(desc, attributes, isa);
    fields.push_back(row == before ? "=" : row);
    before = row;
  }
  return absl::StrJoin(fields, " ");
}

void AddLinesOf(absl::Span<const Kind> kinds, std::vector<std::string>* lines) {
  for (const std::string list : kLists) {
    for (const bench::Shape& shape :
         bench::ReadShapes(absl::StrCat("tests/bench/", list, "_convs.txt"))) {
      for (const Kind& kind : kinds) {
        if (!kind.pools || shape.out % 2 == 0) lines->push_back(LineOf(list, shape, kind));
      }
    }
  }
}

std::vector<std::string> LinesNow() {
  std::vector<std::string> lines;
  AddLinesOf(kKinds, &lines);
  AddLinesOf({&kTraining, 1}, &lines);
  return lines;
}

std::vector<std::string> LinesOfTable() {
  std::ifstream file("tests/engine/primitives/convolution/choices.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

TEST(ConvolutionChoicesTest, AreThoseOfTheTable) {
  const std::vector<std::string> now = LinesNow(), table = LinesOfTable();
  EXPECT_GT(now.size(), 400u);
  EXPECT_EQ(now.size(), table.size());
  for (size_t i = 0; i < now.size() && i < table.size(); ++i) EXPECT_EQ(now[i], table[i]);
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (now != table && outputs != nullptr) {
    std::ofstream(absl::StrCat(outputs, "/choices.txt")) << absl::StrJoin(now, "\n") << "\n";
  }
}

}  // namespace
}  // namespace tilewire::testing
