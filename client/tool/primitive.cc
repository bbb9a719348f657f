// SPDX-License-Identifier: Apache-2.0
//
// `tilewire primitive`: compile one primitive on the server, run it, print what was chosen and how
// long it took.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/latencies.h"
#include "client/primitive_text.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

constexpr char kPrimitiveExamples[] = R"(Tensors are written [type:]dims[:layout].

  tilewire primitive convolution --src=1x64x56x56 --weights=64x64x3x3 --padding=1 --relu
  tilewire primitive inner_product --src=1x2048 --weights=1000x2048 --bias
  tilewire primitive pooling --src=1x64x112x112:nhwc --kernel=3 --strides=2 --padding=1
  tilewire primitive eltwise --src=1x64x56x56 --algorithm=tanh
  tilewire primitive softmax --src=1x1000 --axis=1
  tilewire primitive sum --src 1x64x56x56 1x64x56x56 --scales 1 0.5
  tilewire primitive concat --src 1x24x6x5 1x16x6x5 --axis=1
  tilewire primitive deconvolution --src=1x64x28x28 --weights=32x64x2x2 --strides=2
  tilewire primitive matmul --src=8x128x64 --weights=8x64x128
  tilewire primitive binary --src 1x64x56x56 1x64x1x1 --algorithm=mul
  tilewire primitive lrn --src=1x96x55x55 --alpha=1e-4 --beta=0.75
  tilewire primitive resampling --src=1x64x28x28 --dst=1x64x56x56 --algorithm=linear
  tilewire primitive reduction --src=1x64x7x7 --dst=1x64x1x1 --algorithm=mean
  tilewire primitive batch_normalization --src=1x64x56x56 --global_stats --scale_shift
  tilewire primitive layer_normalization --src=128x768 --scale_shift
  tilewire primitive shuffle --src=1x40x6x5 --group_size=10
  tilewire primitive reorder --src=1x64x56x56:nchw --dst=1x64x56x56:nChw16c)";

constexpr char kWhenInvalid[] =
    "`tilewire primitive --help` explains how tensors are written and what each option means.";

void PrintCreated(const v1::CreateResponse& created) {
  absl::PrintF("implementation  %s\n", created.implementation());
  for (const v1::ArgumentDesc& argument : created.arguments()) {
    absl::PrintF("%-14s  %s, %d bytes\n", argument.name(),
                 argument.text().empty() ? ToText(argument.desc()) : argument.text(),
                 argument.size_bytes());
  }
  for (const v1::Refusal& refusal : created.refusals()) {
    absl::PrintF("not taken       %s: %s\n", refusal.implementation(), refusal.reason());
  }
  absl::PrintF("scratchpad      %d bytes\n", created.scratchpad_bytes());
  if (created.cache_hit()) {
    absl::PrintF("compiled        before (cache hit)\n");
  } else {
    absl::PrintF("compiled        now, in %s (cache miss)\n",
                 LatencyText(absl::Nanoseconds(created.compile_time_ns())));
  }
}

int RunPrimitive(const Server& server, const PrimitiveText& text, int repeat) {
  absl::StatusOr<v1::PrimitiveDesc> desc = ParsePrimitive(text);
  if (!desc.ok()) {
    absl::FPrintF(stderr, "tilewire: %s\n`tilewire primitive --help` shows examples.\n",
                  desc.status().message());
    return 2;
  }
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  v1::CreateRequest create;
  *create.mutable_primitive() = *desc;
  auto created = (*client)->Create(create);
  if (!created.ok()) return Report(created.status(), kWhenInvalid);
  PrintCreated(*created);
  auto request = MakeExecuteRequest(*desc, *created);
  if (!request.ok()) return Report(request.status(), kWhenInvalid);
  Latencies reorder_in, kernel, reorder_out, whole;
  for (int i = 0; i < repeat; ++i) {
    const absl::Time sent = absl::Now();
    auto response = (*client)->Execute(*request);
    if (!response.ok()) return Report(response.status(), kWhenInvalid);
    whole.Add(absl::Now() - sent);
    reorder_in.Add(absl::Nanoseconds(response->reorder_in_ns()));
    kernel.Add(absl::Nanoseconds(response->kernel_ns()));
    reorder_out.Add(absl::Nanoseconds(response->reorder_out_ns()));
  }
  absl::PrintF("of %d runs       median       fastest\n", repeat);
  const auto row = [](const char* name, const Latencies& times) {
    absl::PrintF("  %-12s  %-11s  %s\n", name, LatencyText(times.Percentile(50)),
                 LatencyText(times.Percentile(0)));
  };
  row("reorder in", reorder_in);
  row("kernel", kernel);
  row("reorder out", reorder_out);
  row("round trip", whole);
  return 0;
}

void AddShapeOptions(CLI::App* command, PrimitiveText* text) {
  command->add_option("--src", text->srcs, "source; two for binary, several for sum and concat")
      ->required();
  command->add_option("--weights", text->weights,
                      "OxIx..., I counted within a group; KxN of matmul");
  command->add_option("--dst", text->dst,
                      "destination; its shape follows by default (not for reorder, resampling, "
                      "reduction)");
  command->add_flag("--bias", text->bias, "add a bias");
  command->add_option("--groups", text->groups, "of a convolution or deconvolution")
      ->capture_default_str();
  command->add_option("--strides", text->strides, "2 or 2x1")->capture_default_str();
  command->add_option("--dilations", text->dilations, "counted from 0, which is dense")
      ->capture_default_str();
  command->add_option("--padding", text->padding, "1 or 1x0, on both sides")->capture_default_str();
  command->add_option("--padding_right", text->padding_right, "where it differs on the right");
  command->add_option("--kernel", text->kernel, "of pooling");
  command->add_option("--axis", text->axis, "of softmax, concat, shuffle")->capture_default_str();
  command->add_option("--group_size", text->group_size, "of shuffle")->capture_default_str();
  command->add_flag("--backward", text->backward, "of shuffle");
}

void AddFunctionOptions(CLI::App* command, PrimitiveText* text) {
  command->add_option("--alpha", text->alpha, "of eltwise and lrn");
  command->add_option("--beta", text->beta, "of eltwise and lrn");
  command->add_option("--k", text->k, "of lrn")->capture_default_str();
  command->add_option("--local_size", text->local_size, "of lrn")->capture_default_str();
  command->add_option("--p", text->p, "of a reduction's norm")->capture_default_str();
  command->add_option("--eps", text->eps, "of normalizations and a reduction's norm")
      ->capture_default_str();
  command->add_flag("--global_stats", text->global_stats,
                    "mean and variance of a normalization are arguments");
  command->add_flag("--scale_shift", text->scale_shift, "of a normalization");
}

}  // namespace

void AddPrimitiveCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("primitive", "Compile and time one primitive on the server");
  command->footer(kPrimitiveExamples);
  auto text = std::make_shared<PrimitiveText>();
  auto repeat = std::make_shared<int>(10);
  auto relu = std::make_shared<bool>(false);
  command->add_option("kind", text->kind, "which primitive")
      ->required()
      ->check(CLI::IsMember(PrimitiveKinds()));
  AddShapeOptions(command, text.get());
  command->add_option(
      "--algorithm", text->algorithm,
      "convolution: auto direct winograd; pooling: max avg_include_padding avg_exclude_padding; "
      "eltwise: relu tanh elu ...; binary: add mul max min div sub; lrn: across_channels "
      "within_channel; resampling: nearest linear; reduction: max min sum mul mean norm_...");
  AddFunctionOptions(command, text.get());
  command->add_option("--scales", text->scales, "of sum, one per source");
  command->add_option("--post_op", text->post_ops,
                      "sum, max_pooling (2x2, last), or the name of an eltwise; several in order");
  command->add_flag("--relu", *relu, "short for a last --post_op=relu");
  command->add_option("--repeat", *repeat, "runs")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->callback([=, &server] {
    if (*relu) text->post_ops.push_back("relu");
    *exit_code = RunPrimitive(server, *text, *repeat);
  });
}

}  // namespace tilewire::client
