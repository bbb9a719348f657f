// SPDX-License-Identifier: Apache-2.0
#include "client/tables/plan_text.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

constexpr int kColumns = 80;

std::string Milliseconds(int64_t nanoseconds) {
  return absl::StrFormat("%.3f ms", static_cast<double>(nanoseconds) * 1e-6);
}

int64_t BytesOf(const v1::PlanStep& step) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : step.tensors()) bytes += tensor.size_bytes();
  return bytes;
}

// "src f32:1x3x9x7:nchw, weights ... -> f32:1x20x9x7:nChw16c"
std::string LayoutsText(const v1::PlanStep& step) {
  std::string sources, destination;
  for (const v1::PlanTensor& tensor : step.tensors()) {
    if (tensor.argument() == "dst") {
      destination = absl::StrCat(" -> ", tensor.layout());
    } else {
      absl::StrAppend(&sources, sources.empty() ? " " : ", ", tensor.argument(), " ",
                      tensor.layout());
    }
  }
  return absl::StrCat(sources, destination);
}

std::string TuningLine(const std::string& tuning) {
  return tuning.empty() ? "" : absl::StrCat("tuned by ", ShownText(tuning), "\n");
}

std::string HeadText(const v1::ExplainResponse& plan) {
  int64_t operations = 0;
  for (const v1::PlanStep& step : plan.steps()) operations += step.operations();
  std::string text = absl::StrFormat(
      "%s version %s: %s, %.2f GFLOP in products of matrices%s\n"
      "weights %s in the file, activations %s, scratchpad %s\n",
      ShownText(plan.model()), ShownText(plan.version()), CountText(plan.steps_size(), "step"),
      static_cast<double>(operations) * 1e-9,
      plan.precision().empty() ? "" : absl::StrCat(", precision ", plan.precision()),
      BytesText(plan.weights_bytes()), BytesText(plan.activations_bytes()),
      BytesText(plan.scratchpad_bytes()));
  text += TuningLine(plan.tuning());
  if (plan.runs() == 0) return text;
  const double gflops =
      plan.run_ns() > 0 ? static_cast<double>(operations) / static_cast<double>(plan.run_ns()) : 0;
  absl::StrAppendFormat(
      &text, "median of %s %s: %.1f of %.1f GFLOP/s (%s)%s\n", CountText(plan.runs(), "run"),
      Milliseconds(plan.run_ns()), gflops, plan.peak_gflops(), CountText(plan.threads(), "thread"),
      plan.peak_gflops() > 0 ? absl::StrFormat(", %.1f %%", 100 * gflops / plan.peak_gflops())
                             : "");
  return text;
}

std::string TimesText(const v1::PlanStep& step, const v1::ExplainResponse& plan) {
  if (plan.runs() == 0) return "";
  const double share = static_cast<double>(step.time_ns()) /
                       static_cast<double>(std::max<int64_t>(1, plan.run_ns()));
  const std::string of_peak = step.share_of_peak() > 0
                                  ? absl::StrFormat("%5.1f %%", 100 * step.share_of_peak())
                                  : "      -";
  return absl::StrFormat("%10s %5.1f %% %s ", Milliseconds(step.time_ns()), 100 * share, of_peak);
}

std::string ImplementationText(const v1::PlanStep& step) {
  return step.implementation().empty() ? "-" : step.implementation();
}

std::string WideText(const v1::PlanStep& step) {
  std::string text = absl::StrCat(ImplementationText(step), LayoutsText(step));
  if (!step.fused().empty()) absl::StrAppend(&text, " + ", ShownText(step.fused()));
  absl::StrAppend(&text, "  ", ShownText(step.node()));
  if (step.scratchpad_bytes() > 0)
    absl::StrAppend(&text, " (scratchpad ", BytesText(step.scratchpad_bytes()), ")");
  if (!step.remark().empty()) absl::StrAppend(&text, " (", ShownText(step.remark()), ")");
  if (step.cycles() > 0) absl::StrAppend(&text, " (estimated ", CyclesText(step.cycles()), ")");
  for (const v1::StepRefusal& refusal : step.refusals())
    absl::StrAppend(&text, "\n             not ", refusal.implementation(), ": ",
                    ShownText(refusal.reason()));
  if (step.dumps_size() > 0)
    absl::StrAppend(&text, "\n             code ", absl::StrJoin(step.dumps(), " "));
  return text;
}

// The end of a node's name says more than its beginning, which many share.
std::string NarrowText(const v1::PlanStep& step, int columns) {
  std::string text = CutEnd(ImplementationText(step), columns);
  const int left = columns - TextWidth(text) - 2;
  const std::string node = ShownText(step.node());
  if (TextWidth(node) <= left) return absl::StrCat(text, "  ", node);
  return left <= 2 ? text : absl::StrCat(text, "  ..", Ending(node, left - 2));
}

// Whether steps differ in how exactly they multiply, which is worth a column then.
bool HasPrecisions(const v1::ExplainResponse& plan) {
  return std::any_of(plan.steps().begin(), plan.steps().end(), [](const v1::PlanStep& step) {
    return !step.precision().empty() && step.precision() != "exact";
  });
}

std::string PrecisionCell(const v1::PlanStep& step) {
  return absl::StrFormat("%5s ", step.precision().empty() ? "-" : step.precision());
}

// The steps of `plan`, a line each, below a head.
std::string StepsText(const v1::ExplainResponse& plan, const PlanTextOptions& options) {
  std::vector<const v1::PlanStep*> steps;
  for (const v1::PlanStep& step : plan.steps()) steps.push_back(&step);
  if (options.costliest > 0) {
    const auto cost = [&plan](const v1::PlanStep* step) {
      return plan.runs() > 0 ? step->time_ns() : BytesOf(*step);
    };
    std::stable_sort(steps.begin(), steps.end(),
                     [&](const auto* a, const auto* b) { return cost(a) > cost(b); });
    steps.resize(std::min<size_t>(steps.size(), options.costliest));
  }
  const bool with_bytes = options.wide || plan.runs() == 0;  // else their columns are the node's
  const bool with_precisions = HasPrecisions(plan);
  std::string text =
      absl::StrCat(plan.runs() > 0 ? "      time  of run of peak " : "",
                   with_bytes ? "    bytes " : "", with_precisions ? "prec. " : "",
                   " implementation", options.wide ? ", layouts + fused" : "", ", node\n");
  for (const v1::PlanStep* step : steps) {
    std::string front = TimesText(*step, plan);
    if (with_bytes) absl::StrAppendFormat(&front, "%9s ", BytesText(BytesOf(*step)));
    if (with_precisions) front += PrecisionCell(*step);
    front += ' ';
    absl::StrAppend(&text, front,
                    options.wide ? WideText(*step) : NarrowText(*step, kColumns - TextWidth(front)),
                    "\n");
  }
  return text;
}

// "image=1x3x24x20 row=1x5"
std::string ShapesText(const v1::LivePlan& live) {
  return absl::StrJoin(live.shapes(), " ", [](std::string* text, const auto& shape) {
    absl::StrAppend(text, ShownText(shape.name()), "=", absl::StrJoin(shape.dims(), "x"));
  });
}

// The plan with the mean times of its runs.
v1::ExplainResponse MeanOf(const v1::LivePlan& live) {
  v1::ExplainResponse plan;
  *plan.mutable_steps() = live.steps();
  plan.set_runs(
      static_cast<int32_t>(std::min<int64_t>(live.runs(), std::numeric_limits<int32_t>::max())));
  plan.set_run_ns(live.summed_ns() / live.runs());
  for (v1::PlanStep& step : *plan.mutable_steps()) step.set_time_ns(step.time_ns() / live.runs());
  return plan;
}

}  // namespace

std::string PlanText(const v1::ExplainResponse& plan, const PlanTextOptions& options) {
  return absl::StrCat(HeadText(plan), StepsText(plan, options));
}

std::string LiveProfileText(const v1::LiveProfileResponse& profile,
                            const PlanTextOptions& options) {
  std::vector<const v1::LivePlan*> lived;
  for (const v1::LivePlan& live : profile.plans()) {
    if (live.runs() > 0) lived.push_back(&live);
  }
  std::stable_sort(lived.begin(), lived.end(),
                   [](const auto* a, const auto* b) { return a->summed_ns() > b->summed_ns(); });
  std::string text =
      absl::StrFormat("%s version %s, precision %s: %s with runs\n", ShownText(profile.model()),
                      ShownText(profile.version()), profile.precision(),
                      CountText(static_cast<int64_t>(lived.size()), "plan"));
  text += TuningLine(profile.tuning());
  for (const v1::LivePlan* live : lived) {
    const v1::ExplainResponse mean = MeanOf(*live);
    absl::StrAppendFormat(&text, "\n%s%s: %s, mean %s\n", ShapesText(*live),
                          live->later_stage() ? " (a later stage)" : "",
                          CountText(live->runs(), "run"), Milliseconds(mean.run_ns()));
    text += StepsText(mean, options);
  }
  return text;
}

std::string MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  return status.ok() ? json : absl::StrCat("\"", status.ToString(), "\"\n");
}

}  // namespace tilewire::client
