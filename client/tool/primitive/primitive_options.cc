// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_parser.h"
#include "client/tool/command.h"
#include "client/tool/primitive/primitive_help.h"
#include "client/tool/primitive/primitive_runs.h"

namespace tilewire::client {
namespace {

void AddShapeOptions(CLI::App* command, PrimitiveText* text) {
  command->add_option("--src", text->srcs, "source; two for binary, several for sum and concat")
      ->required();
  command->add_option("--weights", text->weights,
                      "OxIx..., I counted within a group; KxN of matmul; slopes of prelu");
  command->add_option("--indices", text->indices, "of gather");
  command->add_option("--dst", text->dst,
                      "destination; its shape follows by default (not for reorder, resampling, "
                      "reduction)");
  command->add_flag("--bias", text->bias, "add a bias");
  command->add_option("--src_zero_point", text->src_zero_point, "of a matmul of u8 or s8");
  command->add_option("--weights_zero_point", text->weights_zero_point, "of a matmul of u8 or s8");
  command->add_option("--groups", text->groups, "of a convolution or deconvolution")
      ->capture_default_str();
  command->add_option("--strides", text->strides, "2 or 2x1")->capture_default_str();
  command->add_option("--dilations", text->dilations, "counted from 0, which is dense")
      ->capture_default_str();
  command->add_option("--padding", text->padding, "1 or 1x0, on both sides")->capture_default_str();
  command->add_option("--padding_right", text->padding_right, "where it differs on the right");
  command->add_option("--kernel", text->kernel, "of pooling");
  command->add_option("--axis", text->axis, "of softmax, concat, shuffle, gather")
      ->capture_default_str();
  command->add_option("--group_size", text->group_size, "of shuffle")->capture_default_str();
  command->add_flag("--backward", text->backward, "of shuffle");
  command->add_option("--hidden", text->hidden, "size of an rnn's state; its --src is TxNxI");
  command
      ->add_option("--direction", text->direction,
                   "of an rnn: left2right right2left bidirectional_concat bidirectional_sum")
      ->capture_default_str();
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

void PrimitiveOptions::AddTo(CLI::App* command) {
  command_ = command;
  // Not marked as required: the parser would take the word `bench` for it.
  command->add_option("kind", text.kind, "which primitive")->check(CLI::IsMember(PrimitiveKinds()));
  AddShapeOptions(command, &text);
  command->add_option(
      "--algorithm", text.algorithm,
      "convolution: auto direct winograd; pooling: max avg_include_padding avg_exclude_padding; "
      "eltwise: relu tanh elu ...; binary: add mul max min div sub; lrn: across_channels "
      "within_channel; resampling: nearest linear; reduction: max min sum mul mean norm_...; rnn: "
      "lstm gru lbr_gru vanilla_rnn");
  AddFunctionOptions(command, &text);
  command->add_option("--scales", text.scales, "of sum, one per source");
  command->add_option(
      "--post_op", text.post_ops,
      "sum, max_pooling (2x2, last), mask (of backward_data: zeros where a relu before it "
      "gave zeros), or the name of an eltwise; several in order");
  command
      ->add_option("--precision", text.precision,
                   "of products of f32: exact; fast: also by three products of bf16, with matrix "
                   "tiles; bf16: "
                   "also by one")
      ->capture_default_str();
  command
      ->add_option("--prop", text.prop,
                   "propagation: forward_inference forward_training backward backward_data "
                   "backward_weights")
      ->capture_default_str();
  command->add_flag("--relu", relu, "short for a last --post_op=relu");
}

absl::StatusOr<v1::PrimitiveDesc> PrimitiveOptions::Desc() const {
  if (text.kind.empty()) return absl::InvalidArgumentError("which primitive?");
  if (absl::Status taken = CheckTaken(*command_, text.kind); !taken.ok()) return taken;
  PrimitiveText described = text;
  if (relu) described.post_ops.push_back("relu");
  return ParsePrimitive(described);
}

}  // namespace tilewire::client
