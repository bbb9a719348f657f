// SPDX-License-Identifier: Apache-2.0
//
// `tilewire explain`: what a model became on the server, and where the time of a run goes.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/tables/plan_text.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

constexpr char kExplainExamples[] = R"(  tilewire explain resnet50
  tilewire explain resnet50 --runs=20             # with the time of each step
  tilewire explain resnet50 --runs=20 --costliest=10
  tilewire explain resnet50 --wide                # layouts, and why not other kernels
  tilewire explain resnet50 --runs=20 --json > plan.json
  tilewire explain resnet50 --batch=8 --runs=5
  tilewire explain resnet50 --live                # where production's time went
  tilewire explain resnet50 --live --costliest=10
  tilewire explain detector --free_size=480       # not 224 for open sizes
  tilewire explain detector --shape image=1x3x480x640

A line is a step: time, share of the run, share of the peak (what the threads
could multiply and add in registers; for products of matrices only),
implementation and ONNX node; without --runs, bytes read and written instead of
times. The peak is that of f32: integer steps and Winograd's may exceed it.
Where steps differ in how exactly they multiply matrices, as those of a tuned
model do, "prec." tells it: exact, bf16 or int8, and fast for three products of
bf16 each; the head then says which tuning they are of.

With --live nothing is run: the server times each step of every request that it
serves, and tells the mean for each set of shapes, those that took most first.)";

struct Options {
  std::string model, version;
  int64_t batch = 1, free_size = 224;
  int runs = 0;
  PlanTextOptions text;
  bool json = false, live = false;
  double timeout_s = 60;
  std::vector<std::string> shapes;  // NAME=1x3x224x224
};

bool ParseShape(const std::string& text, v1::ExplainRequest::InputShape* shape) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return false;
  shape->set_name(text.substr(0, equals));
  for (absl::string_view size : absl::StrSplit(absl::string_view(text).substr(equals + 1), 'x')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(size, &dim)) return false;
    shape->add_dims(dim);
  }
  return true;
}

bool HasOpenSize(const TensorMetadata& input) {
  return std::find_if(input.shape.begin() + std::min<size_t>(1, input.shape.size()),
                      input.shape.end(), [](int64_t dim) { return dim < 0; }) != input.shape.end();
}

// Shapes of the inputs of a model that leaves more open than the batch.
absl::Status CloseShapes(const Options& options, Client* client, v1::ExplainRequest* request) {
  const auto metadata = client->Metadata(options.model, options.version);
  if (!metadata.ok()) return metadata.status();
  if (auto status = CheckBatch(options.model, *metadata, options.batch); !status.ok())
    return status;
  const std::vector<TensorMetadata>& inputs = metadata->inputs;
  if (std::none_of(inputs.begin(), inputs.end(), HasOpenSize)) return absl::OkStatus();
  for (const TensorMetadata& input : inputs) {
    v1::ExplainRequest::InputShape* closed = request->add_shapes();
    closed->set_name(input.name);
    for (int64_t dim : ClosedShape(input, options.batch, options.free_size)) closed->add_dims(dim);
  }
  return absl::OkStatus();
}

int RunLive(const Server& server, const Options& options) {
  v1::LiveProfileRequest request;
  request.set_model(options.model);
  request.set_version(options.version);
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  const auto profile = (*client)->LiveProfile(request, absl::Seconds(options.timeout_s));
  if (!profile.ok()) return Report(profile.status());
  absl::PrintF("%s",
               options.json ? MessageJson(*profile) : LiveProfileText(*profile, options.text));
  return 0;
}

int RunExplain(const Server& server, const Options& options) {
  v1::ExplainRequest request;
  request.set_model(options.model);
  request.set_version(options.version);
  request.set_batch(options.batch);
  request.set_runs(options.runs);
  request.set_refusals(options.json || options.text.wide);
  for (const std::string& shape : options.shapes) {
    if (ParseShape(shape, request.add_shapes())) continue;
    absl::FPrintF(stderr, "tilewire: --shape: '%s' is not like image=1x3x224x224\n", shape);
    return 2;
  }
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  if (options.shapes.empty()) {
    if (auto status = CloseShapes(options, client->get(), &request); !status.ok())
      return Report(status);
  }
  const auto plan = (*client)->Explain(request, absl::Seconds(options.timeout_s));
  if (!plan.ok()) return Report(plan.status());
  absl::PrintF("%s", options.json ? MessageJson(*plan) : PlanText(*plan, options.text));
  return 0;
}

}  // namespace

void AddExplainCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "explain", "Show the steps that a model became, and where the time of a run goes");
  command->footer(kExplainExamples);
  auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "which model")->required();
  command->add_option("--model_version", options->version, "by default the highest");
  CLI::Option* batch = command->add_option("--batch", options->batch, "images a run")
                           ->check(CLI::Range(1, 1000000))
                           ->capture_default_str();
  CLI::Option* shape =
      command
          ->add_option("--shape", options->shapes,
                       "dims of an input with its batch, NAME=1x3x224x224; several are allowed")
          ->excludes(batch);
  CLI::Option* free_size = command
                               ->add_option("--free_size", options->free_size,
                                            "height and width where the model leaves them open")
                               ->check(AtLeastOne())
                               ->capture_default_str();
  CLI::Option* runs =
      command->add_option("--runs", options->runs, "timed runs on the server, 0 to 1000")
          ->check(CLI::Range(0, 1000))
          ->capture_default_str();
  CLI::Option* live = command->add_flag(
      "--live", options->live, "the mean times of the requests that were served, for all shapes");
  for (CLI::Option* other : {batch, shape, free_size, runs}) live->excludes(other);
  CLI::Option* costliest = command
                               ->add_option("--costliest", options->text.costliest,
                                            "only so many steps, the costliest first")
                               ->check(CLI::Range(0, 1000000));
  CLI::Option* wide = command->add_flag("--wide", options->text.wide,
                                        "layouts, fused steps, scratchpads, remarks, refusals and "
                                        "files of dumped code as well, in lines of any length");
  command->add_flag("--json", options->json, "everything, for programs")
      ->excludes(costliest)
      ->excludes(wide);
  command->add_option("--timeout", options->timeout_s, "seconds to wait for the answer")
      ->check(Between(0.001, 3600.0))
      ->capture_default_str();
  command->callback([=, &server] {
    *exit_code = options->live ? RunLive(server, *options) : RunExplain(server, *options);
  });
}

}  // namespace tilewire::client
