// SPDX-License-Identifier: Apache-2.0
//
// The text of a scrape in Prometheus's format: the values of the metrics of metric_list.inc, as
// they are now. Made anew for each scrape; what is counted lives elsewhere. Thread-compatible.
#ifndef SERVICE_OBSERVE_METRICS_H_
#define SERVICE_OBSERVE_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "service/observe/histogram.h"

namespace tilewire::service {

enum class Metric : size_t {
#define TILEWIRE_METRIC(id, name, type, labels, help) id,
#include "service/observe/metric_list.inc"
#undef TILEWIRE_METRIC
  kEnd
};

// The counts of a histogram by size; all that is larger than the last bound is in `count` alone.
struct SizeCounts {
  std::vector<std::pair<double, int64_t>> up_to;  // bounds, ascending, and the values up to each
  int64_t count = 0;
  double sum = 0;
};
// In seconds, by 16 bounds from 100 us to 10 s.
SizeCounts InSeconds(const Histogram::Sums& sums);

class MetricsText {
 public:
  MetricsText();
  ~MetricsText();

  // A value per metric and set of labels. `labels` are the values of the row's, in its order, and
  // as many.
  void Add(Metric metric, absl::Span<const absl::string_view> labels, double value);
  void Add(Metric metric, absl::Span<const absl::string_view> labels, const SizeCounts& counts);
  void Add(Metric metric, double value) { Add(metric, {}, value); }

  // Metrics without a value are left out.
  std::string Text() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_METRICS_H_
