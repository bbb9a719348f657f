// SPDX-License-Identifier: Apache-2.0
#include "nlohmann/json.hpp"

#include <optional>

#include "client/top/text.h"

namespace tilewire::client {
namespace {

using nlohmann::json;

json JsonOf(const std::optional<double>& value) { return value ? json(*value) : json(); }

json JsonOf(const VersionInterval& version) {
  return {{"version", version.version},
          {"state", version.state},
          {"reason", version.reason},
          {"requests_per_s", version.requests_per_s},
          {"rows_per_s", version.rows_per_s},
          {"p50_ms", JsonOf(version.p50_ms)},
          {"p99_ms", JsonOf(version.p99_ms)},
          {"queue_share", JsonOf(version.queue_share)},
          {"cores", version.cores},
          {"errors_per_s", version.errors_per_s},
          {"refused_per_s", version.refused_per_s},
          {"held_bytes", version.held_bytes}};
}

json JsonOf(const ModelInterval& model) {
  json versions = json::array();
  for (const VersionInterval& version : model.versions) versions.push_back(JsonOf(version));
  return {{"model", model.name},
          {"waiting", model.waiting},
          {"running", model.running},
          {"versions", versions}};
}

}  // namespace

std::string TopJson(const TopInterval& top) {
  json models = json::array();
  for (const ModelInterval& model : top.models) models.push_back(JsonOf(model));
  const json all = {{"server_version", top.server_version},
                    {"state", top.state},
                    {"at_ms", absl::ToUnixMillis(top.at)},
                    {"interval_s", absl::ToDoubleSeconds(top.length)},
                    {"uptime_s", absl::ToDoubleSeconds(top.uptime)},
                    {"requests_per_s", top.RequestsPerSecond()},
                    {"cores", top.cores},
                    {"cores_used", top.Cores()},
                    {"cores_busy", top.cores_busy},
                    {"throttled_share", top.throttled_share},
                    {"cpu_wait_share", JsonOf(top.cpu_wait_share)},
                    {"work_bytes", top.work_bytes},
                    {"work_limit_bytes", top.work_limit_bytes},
                    {"held_bytes", top.held_bytes},
                    {"connections", top.connections},
                    {"unnamed_errors_per_s", top.unnamed_errors_per_s},
                    {"models", models}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::client
