// SPDX-License-Identifier: Apache-2.0
#include "service/observe/metrics.h"

#include <sstream>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "prometheus/metric_type.h"
#include "prometheus/text_serializer.h"

namespace tilewire::service {
namespace {

enum class ValueType : uint8_t { kCounter, kGauge, kHistogram };

struct MetricRow {
  const char* name;
  ValueType type;
  const char* labels;
  const char* help;
};

constexpr MetricRow kMetricRows[] = {
#define TILEWIRE_METRIC(id, name, type, labels, help) {name, ValueType::type, labels, help},
#include "service/observe/metric_list.inc"
#undef TILEWIRE_METRIC
};

prometheus::MetricType TypeOf(ValueType type) {
  switch (type) {
    case ValueType::kCounter:
      return prometheus::MetricType::Counter;
    case ValueType::kGauge:
      return prometheus::MetricType::Gauge;
    case ValueType::kHistogram:
      break;
  }
  return prometheus::MetricType::Histogram;
}

// Ends of buckets of Histogram.
constexpr absl::Duration kBounds[] = {
    absl::Microseconds(100), absl::Microseconds(200), absl::Microseconds(500),
    absl::Milliseconds(1),   absl::Milliseconds(2),   absl::Milliseconds(5),
    absl::Milliseconds(10),  absl::Milliseconds(20),  absl::Milliseconds(50),
    absl::Milliseconds(100), absl::Milliseconds(200), absl::Milliseconds(500),
    absl::Seconds(1),        absl::Seconds(2),        absl::Seconds(5),
    absl::Seconds(10)};

prometheus::ClientMetric::Histogram HistogramOf(const SizeCounts& counts) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_count = counts.count;
  histogram.sample_sum = counts.sum;
  for (const auto& [bound, up_to] : counts.up_to) {
    histogram.bucket.push_back(
        {.cumulative_count = static_cast<uint64_t>(up_to), .upper_bound = bound});
  }
  return histogram;
}

}  // namespace

SizeCounts InSeconds(const Histogram::Sums& sums) {
  SizeCounts counts{.up_to = {}, .count = sums.count, .sum = sums.ns * 1e-9};
  for (const absl::Duration bound : kBounds)
    counts.up_to.emplace_back(absl::ToDoubleSeconds(bound), sums.CountUpTo(bound));
  return counts;
}

struct MetricsText::Families {
  // One more than there are labels of the row: without the label's name none.
  prometheus::ClientMetric* Add(Metric metric, absl::Span<const absl::string_view> labels) {
    const auto row = static_cast<size_t>(metric);
    std::vector<prometheus::ClientMetric>& values = rows[row].metric;
    prometheus::ClientMetric& value = values.emplace_back();
    const std::vector<std::string> names =
        absl::StrSplit(kMetricRows[row].labels, ',', absl::SkipEmpty());
    for (size_t i = 0; i < names.size(); ++i)
      value.label.push_back({names[i], std::string(labels.at(i))});
    return &value;
  }

  std::vector<prometheus::MetricFamily> rows;
};

MetricsText::MetricsText() : families_(std::make_unique<Families>()) {
  for (const MetricRow& row : kMetricRows) {
    prometheus::MetricFamily& family = families_->rows.emplace_back();
    family.name = row.name;
    family.help = row.help;
    family.type = TypeOf(row.type);
  }
}

MetricsText::~MetricsText() = default;

void MetricsText::Add(Metric metric, absl::Span<const absl::string_view> labels, double value) {
  prometheus::ClientMetric* const added = families_->Add(metric, labels);
  const auto row = static_cast<size_t>(metric);
  (kMetricRows[row].type == ValueType::kCounter ? added->counter.value : added->gauge.value) =
      value;
}

void MetricsText::Add(Metric metric, absl::Span<const absl::string_view> labels,
                      const SizeCounts& counts) {
  families_->Add(metric, labels)->histogram = HistogramOf(counts);
}

std::string MetricsText::Text() const {
  std::vector<prometheus::MetricFamily> told;
  for (const prometheus::MetricFamily& family : families_->rows) {
    if (!family.metric.empty()) told.push_back(family);
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, told);
  return text.str();
}

}  // namespace tilewire::service
