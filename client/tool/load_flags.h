// SPDX-License-Identifier: Apache-2.0
//
// The options of `tilewire load`, and the loads that they describe.
#ifndef CLIENT_TOOL_LOAD_FLAGS_H_
#define CLIENT_TOOL_LOAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/load/load.h"
#include "client/load/record.h"
#include "client/tool/picture_options.h"

namespace tilewire::client {

// Where a record goes, and what it is judged by; `tilewire report` has these options too.
struct RecordFlags {
  std::string json, csv, html, require;
};
void AddRecordOptions(CLI::App* command, RecordFlags* flags);
// Writes the files that are asked for.
absl::Status WriteRecord(const LoadRecord& record, const RecordFlags& flags);
// Prints the verdict on each run; whether all are as required.
absl::StatusOr<bool> JudgeRecord(const LoadRecord& record, const RecordFlags& flags);

struct LoadFlags {
  std::string model, mix, profile, layout = "nchw", arrivals = "poisson";
  std::string think, think_times = "exponential";
  std::vector<int> concurrency = {1};
  std::vector<double> rates;
  std::vector<std::string> arrays, images;
  std::string p99, golden, record;
  int connections = 4, threads = 1, max_waiting = 10'000;
  double warm_up_s = 0, duration_s = 0, timeout_s = 60, tolerance = 0;
  double first_rate = 0, precision = 0.05, search_time_s = 0;
  int64_t requests = 0, batch = 1, free_size = 224, distinct = 4;
  uint64_t seed = 1;
  bool find_rate = false, split = false;
  PictureOptions pictures;
  RecordFlags report;
};
void AddLoadOptions(CLI::App* command, LoadFlags* flags);

// kInvalidArgument  a flag is missing, or one that `command` was given has no effect beside others
absl::Status CheckTogether(const CLI::App& command, const LoadFlags& flags);

// All but the loop itself: parts with their inputs, and what holds for every loop.
absl::StatusOr<LoadOptions> MakeLoadOptions(const LoadFlags& flags, Client* client);

// Requests of one model and batch, and their share of all.
struct WantedRequests {
  std::string model;
  int64_t batch = 1;
  double share = 1;
};
// "digits@8:3,resnet50": NAME[@BATCH][:SHARE] each.
absl::StatusOr<std::vector<WantedRequests>> ParseMix(const std::string& text);

// The parts of a load: the model with random inputs or with those of files, or a mix of models.
absl::StatusOr<std::vector<LoadPart>> MakeLoadParts(const LoadFlags& flags, Client* client);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_LOAD_FLAGS_H_
