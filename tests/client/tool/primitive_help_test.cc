// SPDX-License-Identifier: Apache-2.0
//
// The help of `tilewire primitive` beside the tables of the engine.
#include "client/tool/primitive/primitive_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "client/primitive_parser.h"
#include "engine/primitives/primitives.h"

namespace tilewire::client {
namespace {

// The propagations that a row of the primitive runs, by name. Rows of rnn refuse training once they
// see the descriptor; their table does not say so.
std::set<std::string> PropagationsInTables(const std::string& primitive) {
  std::set<std::string> names;
  for (const ImplementationRow& row : AllImplementations()) {
    if (PrimitiveKindName(row.kind) != primitive) continue;
    if (primitive == "rnn") return {"forward_inference"};
    for (PropKind kind : {PropKind::kForwardTraining, PropKind::kForwardInference,
                          PropKind::kBackward, PropKind::kBackwardData, PropKind::kBackwardWeights})
      if (row.traits.propagations.Has(kind)) names.emplace(PropKindName(kind));
  }
  return names;
}

// Kinds whose descriptors have no propagation run forward alone.
TEST(PrimitiveHelp, PropagationsAreThoseThatImplementationsRun) {
  int with_propagations = 0;
  for (const std::string& kind : PrimitiveKinds()) {
    SCOPED_TRACE(kind);
    const std::set<std::string> in_tables = PropagationsInTables(kind);
    EXPECT_FALSE(in_tables.empty());
    const std::string words = PropagationsOf(kind);
    if (words.empty()) {
      for (const char* name : {"backward", "backward_data", "backward_weights"})
        EXPECT_FALSE(in_tables.contains(name)) << name;
      continue;
    }
    ++with_propagations;
    EXPECT_THAT(std::vector<std::string>(absl::StrSplit(words, ' ')),
                ::testing::UnorderedElementsAreArray(in_tables));
  }
  EXPECT_GT(with_propagations, 10);
}

}  // namespace
}  // namespace tilewire::client
