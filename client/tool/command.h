// SPDX-License-Identifier: Apache-2.0
//
// Shared by the subcommands of `tilewire`. Each function below declares one subcommand on `app`,
// which sets `*exit_code` when it is chosen: 0 success, 1 the server or an answer failed, 2 a bad
// command line or file.
#ifndef CLIENT_TOOL_COMMAND_H_
#define CLIENT_TOOL_COMMAND_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/image.h"
#include "client/tables/models_text.h"

namespace tilewire::client {

// Where the server is; filled by the options that every subcommand takes.
struct Server {
  std::string address = "127.0.0.1:8001";
  double connect_timeout_s = 5;
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key, tls_name;  // files, and the name in the certificate
  // `bare`: see ConnectOptions.
  absl::StatusOr<std::unique_ptr<Client>> Connect(bool bare = false) const;
};

void AddModelsCommand(CLI::App* app, const Server& server, int* exit_code);
void AddInferCommand(CLI::App* app, const Server& server, int* exit_code);
void AddEvaluateCommand(CLI::App* app, const Server& server, int* exit_code);
void AddLoadCommand(CLI::App* app, const Server& server, int* exit_code);
void AddReportCommand(CLI::App* app, int* exit_code);
void AddCheckCommand(CLI::App* app, int* exit_code);
void AddTrainCommand(CLI::App* app, int* exit_code);
void AddTuneCommand(CLI::App* app, int* exit_code);
void AddExplainCommand(CLI::App* app, const Server& server, int* exit_code);
void AddSlowCommand(CLI::App* app, const Server& server, int* exit_code);
void AddTopCommand(CLI::App* app, const Server& server, int* exit_code);
void AddPrimitiveCommand(CLI::App* app, const Server& server, int* exit_code);
void AddImplementationsCommand(CLI::App* app, const Server& server, int* exit_code);
void AddProbeCommand(CLI::App* app, const Server& server, int* exit_code);

// kInvalidArgument  `address` is neither HOST:PORT nor several of them with commas between
// and the errors of TargetOf()
absl::Status CheckAddress(const std::string& address);

// --tls and what belongs to it.
void AddTlsOptions(CLI::App* app, Server* server);

// Accepts a number from `low` to `high`, which NaN is not.
CLI::Validator Between(double low, double high);
// The same of numbers below `end`.
CLI::Validator Below(double low, double end);
// A file that can be written, which is told before the work, not after it.
CLI::Validator Writable();
// A flag, whether it has an effect beside the others, and why else it has none.
struct FlagEffect {
  const char* flag;
  bool has_one;
  const char* otherwise;
};
// kInvalidArgument  `command` was given a flag that has no effect
absl::Status CheckEffects(const CLI::App& command, const std::vector<FlagEffect>& effects);

// As many as one may count or send.
CLI::Validator AtLeastOne();

// Prints the error and what to do next; the exit status of a server or an answer that failed.
// `when_invalid` is what to do when the server takes the arguments for wrong; empty: to look up the
// model.
int Report(const absl::Status& status, absl::string_view when_invalid = "");
// Prints what is wrong with a file; the exit status of a bad command line or file.
int Refuse(const absl::Status& status);

// --scale, --mean, --std.
void AddNormalizationOptions(CLI::App* command, Normalization* normalization);

absl::StatusOr<std::string> ReadFile(const std::string& path);
// Comes to its place once it is whole, with the permissions of what it replaces; a link stays one,
// also where its file is new. Devices and pipes are written as they are, and so is a file that may
// be written but not replaced, because its folder takes no files or it is a mount point: if that
// fails, the old content is lost. Errors: those of reader::NewFile, or of the system.
absl::Status WriteFile(const std::string& path, absl::string_view bytes);
Layout ParseLayout(const std::string& name);  // of an option checked to be nchw or nhwc
// kInvalidArgument  an input's first dimension, which is the batch, is fixed to another number; 1
//                   stands for what the model fixes
absl::Status CheckBatch(const std::string& model, const ModelMetadata& metadata, int64_t batch);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_COMMAND_H_
