// SPDX-License-Identifier: Apache-2.0
//
// Which input channels the lanes of a vector of output channels read, where groups are narrower
// than vectors or do not begin with one. Output channels of all groups are neighbours, so that a
// vector holds those of several groups, or parts of them. In step i each lane multiplies input
// channel i of its own group:
//
//   lane l of block j    channel (lanes * j + l) / (O/G) * (I/G) + i of src
//
// These channels lie in one or more blocks of src, the sources of the step. Blocks of output
// channels differ in where their sources begin, and otherwise are of few kinds: each kind has a
// table of its steps, which generated code reads. Tables depend on the shape alone. Immutable;
// thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_LANES_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_LANES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// How the lanes of a step get their channels. A source is a block of src, whose lanes are permuted;
// or one channel, which goes to all lanes of a group.
struct StepForm {
  static constexpr int kMostSources = 4;  // a step of more is cut into several, for some lanes each
  static constexpr int kForms = 2 * kMostSources;

  int sources = 1;
  bool broadcasts = false;

  static StepForm At(int index) { return {index % kMostSources + 1, index >= kMostSources}; }
  int index() const { return sources - 1 + (broadcasts ? kMostSources : 0); }
};

// Where a step keeps what generated code reads, in bytes from its beginning.
class StepLayout {
 public:
  StepLayout(const VectorUnit& unit, const StepForm& form);

  // A vector: for each lane that of the source's block. Not where a source is one channel.
  int indices(int source) const { return source * vector_bytes_; }
  // The lanes that are of the source, and those of all sources: bits of an opmask where the unit
  // has masks, otherwise a vector.
  int lanes(int source) const { return indices_bytes_ + source * mask_bytes_; }
  int all_lanes() const { return lanes(sources_); }
  int offset(int source) const { return all_lanes() + mask_bytes_ + source * 8; }  // int64: bytes
  int weights() const { return offset(sources_); }                                 // int64: bytes
  int size() const { return weights() + 8; }

 private:
  const int sources_, vector_bytes_, mask_bytes_, indices_bytes_;
};

// The steps of a block of output channels, those of one form after those of another.
struct StepTable {
  const std::byte* steps = nullptr;
  std::array<int64_t, StepForm::kForms> counts{};  // by StepForm::index()
};

// The properties of a table that its code depends on.
struct StepKind {
  uint32_t forms = 0;     // bits of StepForm::index()
  bool is_split = false;  // steps are for some of the lanes only
  bool operator==(const StepKind&) const = default;

  bool Has(const StepForm& form) const { return (forms >> form.index() & 1) != 0; }
  int MostSources() const;
};

class GroupedLanes {
 public:
  struct Strides {
    int64_t src_block = 0, weights_channel = 0;  // bytes
  };

  // Output channels of the fewest groups that end where both a block of src and one of dst do.
  static int64_t OutputsOfPeriod(const Geometry& geometry, int lanes);

  GroupedLanes(const Geometry& geometry, const VectorUnit& unit, const Strides& strides);

  // `block` is one of output channels, counted over all groups.
  const StepTable& TableOf(int64_t block) const { return tables_[IndexOf(block)]; }
  const StepKind& KindOf(int64_t block) const { return kinds_[IndexOf(block)]; }
  int64_t FirstSource(int64_t block) const;  // the block of src that its sources count from
  int MostSources() const;                   // of all tables

 private:
  struct Step;

  int64_t IndexOf(int64_t block) const;
  std::vector<Step> StepsOf(int64_t block) const;
  void AddSteps(int64_t block, int64_t channel, bool broadcasts, std::vector<Step>* steps) const;
  void AddTable(int64_t block, const Strides& strides);
  void Write(const Step& step, const Strides& strides, std::byte* to) const;

  VectorUnit unit_;
  bool has_width_;                        // of the window
  int64_t ic_, oc_, outputs_;             // of a group; of dst
  int64_t blocks_, period_, src_period_;  // of dst; of a period: blocks of dst and of src
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // of the tables
  std::vector<StepTable> tables_;  // of a period; then of a last block that is in part padding
  std::vector<StepKind> kinds_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_LANES_H_
