// SPDX-License-Identifier: Apache-2.0
#include "client/tool/primitive/primitive_help.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/primitive_words.h"
#include "protos/tilewire.pb.h"

namespace tilewire::client {
namespace {

struct KindOption {
  const char* name;
  std::string meaning;  // empty: what stands in the help of all kinds
};

struct KindHelp {
  const char* kind;
  const char* computes;
  const char* example;  // the options
  std::vector<KindOption> options;
};

// An option whose words are those of an enum of the protocol: "max (the default), min, ...".
template <typename Enum>
KindOption Choices(const char* option, const char* prefix, const std::string& usual) {
  return {option, absl::StrJoin(EnumWords<Enum>(prefix), ", ",
                                [&usual](std::string* out, const std::string& word) {
                                  absl::StrAppend(out, word, word == usual ? " (the default)" : "");
                                })};
}

constexpr char kRepeat[] = "--repeat";

const KindOption kDst = {"--dst", "[type:]dims[:layout]; default: the dims and type that follow"};
const KindOption kGivenDst = {"--dst", "[type:]dims[:layout] of the result; needed"};
const KindOption kStrides = {"--strides", ""}, kPadding = {"--padding", ""},
                 kRight = {"--padding_right", ""};

template <typename Row>
std::vector<Row> With(std::vector<Row> rows, const std::vector<Row>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::vector<KindOption> PostOps() { return {{"--post_op", ""}, {"--relu", ""}}; }

// The options of kinds that multiply matrices.
std::vector<KindOption> OfProducts() { return With(PostOps(), {{"--precision", ""}}); }

// The options of a convolution and its transpose.
std::vector<KindOption> Convolved() {
  return {{"--src", "NxCxHxW, or NxCxW or NxCxDxHxW"},
          {"--weights", "OxIxKHxKW, I counted within a group"},
          kDst,
          {"--bias", "add one per output channel"},
          {"--groups", "that the channels are cut into"},
          kStrides,
          {"--dilations", ""},
          kPadding,
          kRight};
}

std::vector<KindOption> Normalized(const char* eps) {
  return {kDst,
          {"--global_stats", "mean and variance are arguments, not computed from src"},
          {"--scale_shift", "scale and shift are arguments, too"},
          {"--eps", eps}};
}

std::vector<KindHelp> WindowKinds() {
  return {{"convolution", "A convolution of images, of lines or of volumes.",
           "--src=1x64x56x56 --weights=64x64x3x3 --padding=1 --relu",
           With(With(Convolved(),
                     {Choices<v1::ConvolutionAlgorithm>("--algorithm", "CONVOLUTION_", "auto")}),
                OfProducts())},
          {"deconvolution", "A transposed convolution: strides make the result larger.",
           "--src=1x64x28x28 --weights=32x64x2x2 --strides=2", With(Convolved(), PostOps())},
          {"pooling",
           "The maximum or the mean of each window.",
           "--src=1x64x112x112:nhwc --kernel=3 --strides=2 --padding=1",
           {{"--src", "NxCxHxW, or NxCxW or NxCxDxHxW"},
            kDst,
            {"--kernel", "size of the window: 3 or 3x2; needed"},
            kStrides,
            kPadding,
            kRight,
            Choices<v1::PoolingAlgorithm>("--algorithm", "POOLING_", "max")}}};
}

std::vector<KindHelp> MatrixKinds() {
  return {
      {"inner_product", "A fully connected layer: src times the transpose of weights.",
       "--src=1x2048 --weights=1000x2048 --bias",
       With({{"--src", "NxC, or with the dimensions of an image: NxCxHxW"},
             {"--weights", "OxC, or OxCxHxW"},
             kDst,
             {"--bias", "add one per output"}},
            OfProducts())},
      {"matmul", "A product of matrices; leading dimensions are a batch, of which 1 is repeated.",
       "--src=8x128x64 --weights=8x64x128",
       With({{"--src", "MxK, or BxMxK"},
             {"--weights", "KxN, or BxKxN"},
             kDst,
             {"--bias", "add one per column"},
             {"--src_zero_point", "is subtracted from a src of u8 or s8"},
             {"--weights_zero_point", "is subtracted from weights of u8 or s8"}},
            OfProducts())},
      {"rnn",
       "A layer of a recurrent network, over all steps.",
       "--src=40x1x512 --hidden=256 --algorithm=lstm --bias",
       {{"--src", "steps x sequences x inputs"},
        {"--hidden", "size of the state; needed"},
        kDst,
        {"--bias", "add one per gate"},
        Choices<v1::RnnCell>("--algorithm", "RNN_CELL_", "lstm"),
        Choices<v1::RnnDirection>("--direction", "RNN_DIRECTION_", "left2right")}}};
}

std::vector<KindHelp> ElementKinds() {
  const KindOption any = {"--src", "any dims"};
  return {{"eltwise",
           "A function of each element.",
           "--src=1x64x56x56 --algorithm=tanh",
           {any,
            kDst,
            Choices<v1::EltwiseAlgorithm>("--algorithm", "ELTWISE_", "relu"),
            {"--alpha", "of the function: the slope of relu, the exponent's factor of pow, ..."},
            {"--beta", "of the function: the largest value of clip, the exponent of pow, ..."}}},
          {"binary", "A function of two tensors; a size of 1 in the second one is repeated.",
           "--src 1x64x56x56 1x64x1x1 --algorithm=mul",
           With({{"--src", "two tensors"},
                 kDst,
                 Choices<v1::BinaryAlgorithm>("--algorithm", "BINARY_", "add")},
                PostOps())},
          {"sum",
           "The scaled sum of tensors of the same dims.",
           "--src 1x64x56x56 1x64x56x56 --scales 1 0.5",
           {{"--src", "two or more tensors"}, kDst, {"--scales", "one per source; default: 1"}}},
          {"softmax",
           "exp(x) / sum of exp(x), along an axis.",
           "--src=1x1000 --axis=1",
           {any, kDst, {"--axis", "counted from 0"}}},
          {"concat",
           "Tensors one after the other along an axis.",
           "--src 1x24x6x5 1x16x6x5 --axis=1",
           {{"--src", "two or more tensors"}, kDst, {"--axis", "counted from 0"}}},
          {"shuffle",
           "Exchanges the channels of groups, as ShuffleNet does.",
           "--src=1x40x6x5 --group_size=10",
           {any,
            kDst,
            {"--axis", "counted from 0"},
            {"--group_size", "a divisor of the axis' size"},
            {"--backward", "the opposite direction"}}},
          {"gather",
           "The elements of src along an axis that indices name.",
           "--src=1000x64 --indices=s64:8x16 --axis=0",
           {any,
            {"--indices", "[type:]dims[:layout] of s32 (the default), s64 or f32; needed"},
            kDst,
            {"--axis", "counted from 0"}}},
          {"prelu", "src where it is above 0, else src times a slope that is learned.",
           "--src=1x64x56x56 --weights=1x64x1x1",
           With({any,
                 {"--weights", "the slopes: of src's rank, each size that of src or 1; needed"},
                 kDst},
                PostOps())},
          {"reorder",
           "The same elements in another layout or type.",
           "--src=1x64x56x56:nchw --dst=1x64x56x56:nChw16c",
           {any, kGivenDst}}};
}

std::vector<KindHelp> FieldKinds() {
  const KindOption image = {"--src", "NxCxHxW, or NxCxW or NxCxDxHxW"};
  return {{"lrn",
           "src / (k + alpha / n * sum of src^2 over n neighbours)^beta.",
           "--src=1x96x55x55 --alpha=1e-4 --beta=0.75",
           {image,
            kDst,
            Choices<v1::LrnAlgorithm>("--algorithm", "LRN_", "across_channels"),
            {"--local_size", "neighbours in each dimension"},
            {"--alpha", "see above"},
            {"--beta", "see above"},
            {"--k", "see above"}}},
          {"resampling",
           "An image of another size.",
           "--src=1x64x28x28 --dst=1x64x56x56 --algorithm=linear",
           {image, kGivenDst,
            Choices<v1::ResamplingAlgorithm>("--algorithm", "RESAMPLING_", "nearest")}},
          {"reduction",
           "Along each dimension that is 1 in dst and not in src.",
           "--src=1x64x7x7 --dst=1x64x1x1 --algorithm=mean",
           {{"--src", "any dims"},
            kGivenDst,
            Choices<v1::ReductionAlgorithm>("--algorithm", "REDUCTION_", "sum"),
            {"--p", "of the norms"},
            {"--eps", "of the norms"}}},
          {"batch_normalization", "(src - mean) / sqrt(variance + eps), per channel.",
           "--src=1x64x56x56 --global_stats --scale_shift",
           With(With({image}, Normalized("see above")), {{"--relu", "of the result"}})},
          {"layer_normalization", "(src - mean) / sqrt(variance + eps), along the last dimension.",
           "--src=128x768 --scale_shift", With({{"--src", "any dims"}}, Normalized("see above"))}};
}

// Whether the kind has propagations other than inference.
bool HasPropagations(absl::string_view kind) {
  const auto* field = v1::PrimitiveDesc::descriptor()->FindFieldByName(std::string(kind));
  return field != nullptr && field->message_type()->FindFieldByName("prop_kind") != nullptr;
}

std::vector<KindHelp> AllKinds() {
  auto all = With(With(With(WindowKinds(), MatrixKinds()), ElementKinds()), FieldKinds());
  for (KindHelp& help : all) {
    if (HasPropagations(help.kind))
      help.options.push_back({"--prop", absl::StrCat("propagation: ", PropagationsOf(help.kind))});
  }
  return all;
}

std::string ExampleOf(const KindHelp& help) {
  return absl::StrCat("  tilewire primitive ", help.kind, " ", help.example);
}

}  // namespace

std::string PropagationsOf(absl::string_view kind) {
  if (!HasPropagations(kind)) return "";
  constexpr absl::string_view kWithWeights[] = {"convolution", "deconvolution", "inner_product",
                                                "matmul"};
  constexpr absl::string_view kWithParameters[] = {"batch_normalization", "layer_normalization",
                                                   "prelu"};
  if (kind == "rnn") return "forward_inference";
  absl::string_view backward = "backward_data";
  if (kind == "gather") backward = "backward_weights";
  if (absl::c_linear_search(kWithWeights, kind)) backward = "backward_data backward_weights";
  if (absl::c_linear_search(kWithParameters, kind)) backward = "backward backward_data";
  return absl::StrCat("forward_inference forward_training ", backward);
}

std::string PrimitiveExamples() {
  return absl::StrJoin(AllKinds(), "\n", [](std::string* out, const KindHelp& help) {
    absl::StrAppend(out, ExampleOf(help));
  });
}

absl::Status CheckTaken(const CLI::App& command, const std::string& kind) {
  const std::vector<KindHelp> all = AllKinds();
  const auto help = absl::c_find_if(all, [&](const KindHelp& one) { return one.kind == kind; });
  if (help == all.end()) return absl::OkStatus();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_taken =
        name == "kind" || name == kRepeat ||
        absl::c_any_of(help->options, [&](const KindOption& taken) { return taken.name == name; });
    if (option->count() == 0 || is_taken) continue;
    return absl::InvalidArgumentError(absl::StrCat(kind, " does not take ", name,
                                                   "; `tilewire primitive ", kind,
                                                   " --help` shows what it takes"));
  }
  return absl::OkStatus();
}

std::string PrimitiveHelp::make_help(const CLI::App* command, std::string name,
                                     CLI::AppFormatMode mode) const {
  const std::vector<std::string> words = command->get_option("kind")->results();
  for (const KindHelp& help : AllKinds()) {
    if (words.empty() || words[0] != help.kind) continue;
    std::string entries;
    for (const auto& [option_name, meaning] : With(help.options, {{kRepeat, "runs to time"}})) {
      const CLI::Option* option = command->get_option(option_name);
      absl::StrAppend(&entries, Entry(make_option_name(option, false) + make_option_opts(option),
                                      meaning.empty() ? make_option_desc(option) : meaning));
    }
    return absl::StrCat(
        Fitted(absl::StrCat("Compile and time a primitive on the server. ", help.computes)),
        "Usage: tilewire primitive ", help.kind, " [OPTIONS]\n\nOptions:\n", entries, "\n",
        Fitted(absl::StrCat(kTensorText, "\n\n", ExampleOf(help))));
  }
  return HelpFormat::make_help(command, std::move(name), mode);
}

}  // namespace tilewire::client
