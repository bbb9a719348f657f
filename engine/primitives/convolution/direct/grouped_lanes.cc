// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/grouped_lanes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {
namespace {

void WriteNumber(std::byte* to, int64_t number) { std::memcpy(to, &number, sizeof(number)); }

// The answers of `is_of` for each lane.
template <typename Predicate>
void WriteLanes(const VectorUnit& unit, std::byte* to, Predicate is_of) {
  int64_t bits = 0;
  for (int lane = 0; lane < unit.lanes(); ++lane) {
    const int32_t mask = is_of(lane) ? -1 : 0;
    if (mask != 0) bits |= int64_t{1} << lane;
    if (!unit.has_masks()) std::memcpy(to + lane * sizeof(mask), &mask, sizeof(mask));
  }
  if (unit.has_masks()) WriteNumber(to, bits);
}

}  // namespace

StepLayout::StepLayout(const VectorUnit& unit, const StepForm& form)
    : sources_(form.sources),
      vector_bytes_(unit.bytes()),
      mask_bytes_(unit.has_masks() ? static_cast<int>(sizeof(int64_t)) : unit.bytes()),
      indices_bytes_(form.broadcasts ? 0 : form.sources * unit.bytes()) {}

int StepKind::MostSources() const {
  int most = 1;
  for (int i = 0; i < StepForm::kForms; ++i) {
    if (Has(StepForm::At(i))) most = std::max(most, StepForm::At(i).sources);
  }
  return most;
}

// The lanes of one step. A source is a block of src, counted from FirstSource(), or a channel.
struct GroupedLanes::Step {
  int64_t channel = 0;  // of each group
  bool broadcasts = false;
  std::vector<int64_t> sources;
  std::vector<int> source_of;  // per lane; -1: none
  std::vector<int> lane_of;    // of the source's block

  Step(int64_t channel, bool broadcasts, int lanes)
      : channel(channel), broadcasts(broadcasts), source_of(lanes, -1), lane_of(lanes, 0) {}
  StepForm form() const { return {static_cast<int>(sources.size()), broadcasts}; }
};

int64_t GroupedLanes::OutputsOfPeriod(const Geometry& geometry, int lanes) {
  return lanes / std::gcd<int64_t>(lanes, std::gcd(geometry.ic, geometry.oc)) * geometry.oc;
}

GroupedLanes::GroupedLanes(const Geometry& geometry, const VectorUnit& unit, const Strides& strides)
    : unit_(unit),
      has_width_(geometry.kernel[2] > 1),
      ic_(geometry.ic),
      oc_(geometry.oc),
      outputs_(geometry.groups * geometry.oc),
      blocks_(DivUp(outputs_, unit.lanes())),
      period_(OutputsOfPeriod(geometry, unit.lanes()) / unit.lanes()),
      src_period_(period_ * ic_ / oc_) {
  const int64_t whole = outputs_ / unit.lanes();
  for (int64_t block = 0; block < std::min(period_, whole); ++block) AddTable(block, strides);
  if (whole < blocks_) AddTable(whole, strides);
}

int64_t GroupedLanes::IndexOf(int64_t block) const {
  const bool is_padded = (block + 1) * unit_.lanes() > outputs_;
  return is_padded ? static_cast<int64_t>(tables_.size()) - 1 : block % period_;
}

int64_t GroupedLanes::FirstSource(int64_t block) const { return block / period_ * src_period_; }

int GroupedLanes::MostSources() const {
  int most = 1;
  for (const StepKind& kind : kinds_) most = std::max(most, kind.MostSources());
  return most;
}

// Appends the steps for one channel of each group.
void GroupedLanes::AddSteps(int64_t block, int64_t channel, bool broadcasts,
                            std::vector<Step>* steps) const {
  const int lanes = unit_.lanes();
  Step step(channel, broadcasts, lanes);
  for (int lane = 0; lane < lanes; ++lane) {
    const int64_t output = block * lanes + lane;
    if (output >= outputs_) break;
    const int64_t input = output / oc_ * ic_ + channel - FirstSource(block) * lanes;
    const int64_t source = broadcasts ? input : input / lanes;
    if (step.sources.empty() || step.sources.back() != source) {
      if (step.sources.size() == StepForm::kMostSources) {
        steps->push_back(std::move(step));
        step = Step(channel, broadcasts, lanes);
      }
      step.sources.push_back(source);
    }
    step.source_of[lane] = static_cast<int>(step.sources.size()) - 1;
    step.lane_of[lane] = static_cast<int>(input % lanes);
  }
  steps->push_back(std::move(step));
}

// Channels are broadcast where there are as few of them as blocks. Where a window has no width,
// they may be operands of multiplications, which takes no instruction of its own.
std::vector<GroupedLanes::Step> GroupedLanes::StepsOf(int64_t block) const {
  std::vector<Step> steps;
  for (int64_t channel = 0; channel < ic_; ++channel) {
    std::vector<Step> permuted, broadcast;
    AddSteps(block, channel, /*broadcasts=*/false, &permuted);
    AddSteps(block, channel, /*broadcasts=*/true, &broadcast);
    const size_t saved = unit_.has_masks() && !has_width_ ? 1 : 0;
    const bool is_whole = permuted.size() == 1 && broadcast.size() == 1;
    const bool broadcasts =
        is_whole && broadcast[0].sources.size() <= permuted[0].sources.size() + saved;
    for (Step& step : broadcasts ? broadcast : permuted) steps.push_back(std::move(step));
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.form().index() < b.form().index();
  });
  return steps;
}

void GroupedLanes::AddTable(int64_t block, const Strides& strides) {
  const std::vector<Step> steps = StepsOf(block);
  StepTable table;
  StepKind kind = {.is_split = static_cast<int64_t>(steps.size()) > ic_};
  size_t bytes = 0;
  for (const Step& step : steps) {
    bytes += StepLayout(unit_, step.form()).size();
    ++table.counts[step.form().index()];
    kind.forms |= 1u << step.form().index();
  }
  std::byte* to = memory_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
  table.steps = to;
  for (const Step& step : steps) {
    Write(step, strides, to);
    to += StepLayout(unit_, step.form()).size();
  }
  tables_.push_back(table);
  kinds_.push_back(kind);
}

void GroupedLanes::Write(const Step& step, const Strides& strides, std::byte* to) const {
  const StepLayout layout(unit_, step.form());
  const int lanes = unit_.lanes();
  for (int s = 0; s < static_cast<int>(step.sources.size()); ++s) {
    for (int lane = 0; lane < lanes && !step.broadcasts; ++lane) {
      const int32_t index = step.source_of[lane] == s ? step.lane_of[lane] : 0;
      std::memcpy(to + layout.indices(s) + lane * sizeof(index), &index, sizeof(index));
    }
    WriteLanes(unit_, to + layout.lanes(s), [&](int lane) { return step.source_of[lane] == s; });
    const int64_t source = step.sources[s];
    const int64_t offset = step.broadcasts
                               ? source / lanes * strides.src_block +
                                     source % lanes * static_cast<int64_t>(sizeof(float))
                               : source * strides.src_block;
    WriteNumber(to + layout.offset(s), offset);
  }
  WriteLanes(unit_, to + layout.all_lanes(), [&](int lane) { return step.source_of[lane] >= 0; });
  WriteNumber(to + layout.weights(), step.channel * strides.weights_channel);
}

}  // namespace tilewire::convolution
