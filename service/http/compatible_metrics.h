// SPDX-License-Identifier: Apache-2.0
//
// Metrics under the names that dashboards of other servers ask for, beside the server's own.
#ifndef SERVICE_HTTP_COMPATIBLE_METRICS_H_
#define SERVICE_HTTP_COMPATIBLE_METRICS_H_

#include <cstdint>
#include <string>

#include "service/models/served_model.h"
#include "service/models/statistics.h"
#include "service/observe/metrics.h"
#include "service/schedule/dispatcher_load.h"

namespace tilewire::service {

void AddAsTriton(const ServedModel& served, const VersionStatistics::Sums& sums, MetricsText* text);
// `version`: under which all that waits for the model is told, as no version is known of it.
void AddAsTriton(const std::string& model, int64_t version, const DispatcherLoad::OfModel& load,
                 MetricsText* text);
// `utilization` is the machine's, 0 to 1.
void AddMachineAsTriton(double utilization, MetricsText* text);

void AddAsOvms(const ServedModel& served, const VersionStatistics::Sums& sums, MetricsText* text);
void AddAsOvms(const std::string& model, const DispatcherLoad::OfModel& load, MetricsText* text);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_COMPATIBLE_METRICS_H_
