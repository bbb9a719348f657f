// SPDX-License-Identifier: Apache-2.0
//
// The code shared by `tilewire primitive` and `tilewire primitive bench`: the options that describe
// a primitive, and its timed runs on a server.
#ifndef CLIENT_TOOL_PRIMITIVE_RUNS_H_
#define CLIENT_TOOL_PRIMITIVE_RUNS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/latencies.h"
#include "client/primitive_text.h"

namespace tilewire::client {

struct PrimitiveOptions {
  PrimitiveText text;
  bool relu = false;

  // Adds all options to `command`; they write here until it has been parsed.
  void AddTo(CLI::App* command);
  // As parsed.
  //   kInvalidArgument  an option that the kind does not take, and errors of ParsePrimitive()
  absl::StatusOr<v1::PrimitiveDesc> Desc() const;

 private:
  const CLI::App* command_ = nullptr;
};

struct PrimitiveRuns {
  v1::CreateResponse created;
  Latencies reorder_in, kernel, reorder_out, whole;
  // The f32 peak of all threads of an execution, measured after the last run.
  double peak_gflops = 0;
  int threads = 0;

  // Computed from the median of the kernel's times; 0 where nothing is known.
  double gigabytes_per_s() const;  // of all arguments, each counted once
  double gflops() const;           // of products of matrices
  double share_of_peak() const { return peak_gflops > 0 ? gflops() / peak_gflops : 0; }
};

// Advice for when the server refuses a primitive.
inline constexpr char kWhenPrimitiveInvalid[] =
    "`tilewire primitive KIND --help` explains how tensors are written and what each option means.";

// Compiles the primitive on the server.
absl::StatusOr<PrimitiveRuns> CreateOn(Client* client, const v1::PrimitiveDesc& desc);
// Executes what CreateOn() returned, on made-up values.
absl::Status TimeRuns(Client* client, const v1::PrimitiveDesc& desc, int repeat,
                      PrimitiveRuns* runs);

// `tilewire primitive bench FILE`. Its exit status.
int BenchPrimitives(Client* client, const std::string& file, int repeat);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_PRIMITIVE_RUNS_H_
