// SPDX-License-Identifier: Apache-2.0
//
// `tilewire primitive KIND --help`: what this kind computes, its own options only, an example.
#ifndef CLIENT_TOOL_PRIMITIVE_HELP_H_
#define CLIENT_TOOL_PRIMITIVE_HELP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/tool/help_format.h"

namespace tilewire::client {

// How tensors are written.
inline constexpr char kTensorText[] =
    R"(Tensors are written [type:]dims[:layout]. Types are f32 (the default), bf16,
f16, s32, s8 and u8, of indices s64 too. Layouts are nchw, nhwc, nChw16c (blocks
of 16 channels; with AVX2 nChw8c), ncw, ncdhw and so on; of weights oihw, goihw
with groups; a layout that the server does not know is answered with all of them.
`any` lets the primitive choose: the default where there are weights, elsewhere
it is nchw.)";

// A command line for each kind of primitive.
std::string PrimitiveExamples();

// The words of --prop with which the kind runs; empty of a kind that has no propagations.
std::string PropagationsOf(absl::string_view kind);

// Whether the kind takes all options that `command` was given.
//   kInvalidArgument  names one that it does not take
absl::Status CheckTaken(const CLI::App& command, const std::string& kind);

// For the command whose option `kind` names one; without a kind, the help of all of them.
class PrimitiveHelp final : public HelpFormat {
 public:
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_PRIMITIVE_HELP_H_
