// SPDX-License-Identifier: Apache-2.0
//
// Which flags tilewire-server has: names, texts, bounds, and the environment's variables.
#ifndef SERVICE_FLAG_LIST_H_
#define SERVICE_FLAG_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "service/flags.h"

namespace tilewire::service {

// Flags as they are given, where the options have another type or unit.
struct GivenFlags {
  std::optional<int64_t> max_message_mb, transport_mb, primitive_cache_mb;
  int64_t max_work_mb = 0;
  int64_t max_queue_per_model = 0;
  int64_t max_queue_ms = 10'000;
  int64_t slow_ms = 10'000;
  int64_t write_timeout = 30, keepalive = 30, max_idle = 1800, max_age = 43'200;
  int64_t drain_timeout = 30;
  std::vector<std::string> models;
  std::string model_name;
  std::string versions = "latest:1";
  std::string model_control = "poll";
  std::string swap = "beside";
  std::string trial = "process";
  std::vector<std::string> services = {"inference", "primitives", "plans"};
  std::string ready = "all";
  std::string warm_up = "after";
  std::string log_format = "text";
  std::string access_log = "bad";
  std::string max_isa = "best";
  std::string convolution_algorithm = "auto";
  std::string precision = "exact";
  std::string metrics_port = "8002";
  std::vector<std::string> metrics_compatibility;
  std::string trace_format = "chrome";
  bool probe = false;
  bool accept_compressed = false;
  std::vector<std::string> open_rights;
};

// How many of the highest versions "latest:N" or "all" (0) means.
//   kInvalidArgument  another text
absl::StatusOr<uint32_t> ParseVersions(const std::string& text);

// The port that a number or "off" (nullopt) means.
//   kInvalidArgument  another text
absl::StatusOr<std::optional<int>> ParsePort(const std::string& text);

// Parsing writes to `flags` and `given`, which outlive `app`.
void AddFlags(CLI::App* app, Flags* flags, GivenFlags* given);

}  // namespace tilewire::service

#endif  // SERVICE_FLAG_LIST_H_
