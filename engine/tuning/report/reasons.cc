// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/report/reasons.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/tuning/byte_weights.h"
#include "engine/tuning/choice/final_round.h"

namespace tilewire::tuning {
namespace {

struct Figures {
  absl::Duration time;
  double error = -1;
};

Figures FiguresOf(const TunedNode& node, TunedPrecision precision) {
  if (precision == TunedPrecision::kInt8) return {node.int8_time, node.error_alone};
  if (precision == TunedPrecision::kBf16) return {node.bf16_time, node.bf16_alone};
  return {node.exact_time, 0};
}

bool IsMeasured(const TunedNode& node, TunedPrecision precision) {
  return FiguresOf(node, precision).time > absl::ZeroDuration() &&
         node.exact_time > absl::ZeroDuration();
}

absl::Duration SavedBy(const TunedNode& node, TunedPrecision precision) {
  return node.exact_time - FiguresOf(node, precision).time;
}

// "saves 30 us", "costs 5 us more"
std::string SavingText(const TunedNode& node, TunedPrecision precision) {
  const double saved = absl::ToDoubleMicroseconds(SavedBy(node, precision));
  return saved > 0 ? absl::StrFormat("saves %.0f us", saved)
                   : absl::StrFormat("costs %.0f us more", std::fabs(saved));
}

std::string ErrorText(const TunedNode& node, TunedPrecision precision) {
  const double error = FiguresOf(node, precision).error;
  return error < 0 ? ", its error alone was not measured"
                   : absl::StrFormat(", at an l2 of %.1e alone", error);
}

// A precision by itself: "int8 saves 30 us, at an l2 of 1.2e-03 alone".
std::string ByItself(const TunedNode& node, TunedPrecision precision) {
  const std::string time =
      IsMeasured(node, precision)
          ? absl::StrCat(NameOf(precision), " ", SavingText(node, precision))
          : absl::StrCat("the time of ", NameOf(precision), " was not measured");
  return absl::StrCat(time, ErrorText(node, precision));
}

constexpr double kLittle = 0.2;  // of its time, as in choice.cc
constexpr char kNoBf16Row[] = "bf16 changes nothing, as no row of it takes this layer here";

// The reason against a precision that is less exact than the one that was taken.
std::string Against(const TunedNode& node, TunedPrecision precision) {
  if (precision == TunedPrecision::kBf16 && node.bf16_alone == 0) return kNoBf16Row;
  if (!IsMeasured(node, precision)) return ByItself(node, precision);
  const absl::Duration more = SavedBy(node, precision) - (node.precision == TunedPrecision::kBf16
                                                              ? SavedBy(node, node.precision)
                                                              : absl::ZeroDuration());
  if (more <= absl::ZeroDuration())
    return absl::StrCat(NameOf(precision), " is not faster here: ", ByItself(node, precision));
  const bool is_little = more <= node.exact_time * kLittle;
  return absl::StrCat(
      ByItself(node, precision),
      is_little ? ", too little for its error and its conversions"
                : ", for which the budget, the goal or the time of the whole left no room");
}

void AddTo(std::string* text, absl::string_view more) {
  absl::StrAppend(text, text->empty() ? "" : "; ", more);
}

}  // namespace

std::string UniformWinner(absl::Span<const Finalist> finalists) {
  for (const Finalist& one : finalists) {
    if (one.is_chosen && one.name != kLayerByLayer) return one.name;
  }
  return "";
}

std::string ReasonText(const TunedNode& node, const TuningSpec& spec, bool is_chosen,
                       const std::string& winner) {
  std::string text;
  if (!winner.empty()) {
    text =
        absl::StrCat(winner, " won among whole models in turns, whatever a layer gains by itself");
  } else if (is_chosen && node.precision != TunedPrecision::kExact) {
    text = absl::StrCat("taken: ", ByItself(node, node.precision));
  }
  if (is_chosen && node.precision == TunedPrecision::kInt8 &&
      node.largest_weight < kLargestWeight) {
    AddTo(&text, absl::StrCat("its weights are within ", node.largest_weight,
                              ", for products in pairs, as this CPU has no VNNI"));
  }
  const bool tells_against = is_chosen && winner.empty();
  for (TunedPrecision precision : {TunedPrecision::kInt8, TunedPrecision::kBf16}) {
    const bool may_be = precision == TunedPrecision::kInt8 ? spec.may_be_int8 : spec.may_be_bf16;
    if (!may_be || (tells_against && precision == node.precision)) continue;
    if (tells_against && precision > node.precision) {
      AddTo(&text, Against(node, precision));
    } else if (precision == TunedPrecision::kBf16 && node.bf16_alone == 0) {
      AddTo(&text, kNoBf16Row);
    } else {
      AddTo(&text, ByItself(node, precision));
    }
  }
  return text;
}

}  // namespace tilewire::tuning
