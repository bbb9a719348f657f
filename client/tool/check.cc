// SPDX-License-Identifier: Apache-2.0
//
// `tilewire check`: whether a server would load a file, and what keeps it from it. The file is read
// here, by the engine's reader, so that no server is needed and the verdict is a server's.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/tool/check_repository.h"
#include "client/tool/check_training.h"
#include "client/tool/command.h"
#include "engine/onnx/model_check.h"

namespace tilewire::client {
namespace {

using reader::CheckedTensor;
using reader::ModelCheck;

struct CheckedFile {
  std::string path;
  ModelCheck check;
  CheckedTuning tuning;
  std::optional<CheckedTraining> training;  // where it was asked for

  bool loads() const { return check.status.ok() && tuning.problem.empty(); }
};

std::string TensorText(const CheckedTensor& tensor) {
  return ShownText(absl::StrCat(tensor.name, " ", tensor.type, " ",
                                tensor.has_shape
                                    ? absl::StrCat("[", absl::StrJoin(tensor.dims, ", "), "]")
                                    : "without a declared shape"));
}

void PrintTensors(absl::string_view role, const std::vector<CheckedTensor>& tensors) {
  for (const CheckedTensor& tensor : tensors) {
    absl::PrintF("  %-8s %s\n", role, TensorText(tensor));
    role = "";
  }
}

void PrintLines(absl::string_view role, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    absl::PrintF("  %-8s %s\n", role, ShownText(line));
    role = "";
  }
}

void PrintTraining(const CheckedTraining& training) {
  const std::string amount = absl::StrCat(CountText(training.parameters, "parameter"), " of ",
                                          CountText(training.elements, "element"));
  PrintLines("trains", {training.trains() ? amount : "no"});
  PrintLines("", training.lacks);
  PrintLines("note", training.notes);
}

void PrintTable(const std::vector<CheckedFile>& files) {
  int refused = 0;
  for (const CheckedFile& file : files) {
    const ModelCheck& check = file.check;
    refused += file.loads() ? 0 : 1;
    absl::PrintF("%-7s  %s", file.loads() ? "loads" : "REFUSED", ShownText(file.path));
    if (check.opset != 0)
      absl::PrintF("  opset %d, %s", check.opset, CountText(check.nodes, "node"));
    if (check.status.ok()) absl::PrintF(", %.1f MB of weights", check.weights_bytes / 1e6);
    absl::PrintF("\n");
    PrintTensors("inputs", check.inputs);
    PrintTensors("outputs", check.outputs);
    if (check.in_stages) {
      absl::PrintF("  %-8s %s\n", "note",
                   "some sizes are known only once they are computed; what depends on them is "
                   "planned while a request runs");
    }
    if (!check.unfit.ok()) {
      absl::PrintF(
          "  %-8s %s\n", "note",
          ShownText(absl::StrCat("none of the shapes that were tried fits, so that requests "
                                 "may be refused: ",
                                 check.unfit.message())));
    }
    for (const std::string& leftover : check.leftovers)
      absl::PrintF("  %-8s %s\n", "note", ShownText(leftover));
    if (!file.tuning.text.empty())
      absl::PrintF("  %-8s %s\n", "tuning", ShownText(file.tuning.text));
    if (!file.tuning.problem.empty())
      absl::PrintF("  %-8s %s\n", "tuning", ShownText(file.tuning.problem));
    PrintLines("lacks", check.lacks);
    if (file.training) PrintTraining(*file.training);
  }
  if (files.size() > 1)
    absl::PrintF("%d of %d files would be loaded\n", files.size() - refused, files.size());
}

nlohmann::json TensorsJson(const std::vector<CheckedTensor>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckedTensor& tensor : tensors) {
    nlohmann::json dims;
    if (tensor.has_shape) {
      dims = nlohmann::json::array();
      for (const std::string& dim : tensor.dims) {
        int64_t size = 0;
        dims.push_back(absl::SimpleAtoi(dim, &size) ? nlohmann::json(size) : nlohmann::json(dim));
      }
    }
    list.push_back({{"name", tensor.name}, {"type", tensor.type}, {"dims", dims}});
  }
  return list;
}

// Names in a file need not be UTF-8.
void PrintJson(const std::vector<CheckedFile>& files) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckedFile& file : files) {
    const ModelCheck& check = file.check;
    std::vector<std::string> lacks = check.lacks;
    if (!file.tuning.problem.empty()) lacks.push_back(file.tuning.problem);
    nlohmann::json row = {{"file", file.path},
                          {"loads", file.loads()},
                          {"lacks", lacks},
                          {"opset", check.opset},
                          {"nodes", check.nodes},
                          {"inputs", TensorsJson(check.inputs)},
                          {"outputs", TensorsJson(check.outputs)}};
    if (check.status.ok()) row["weights_bytes"] = check.weights_bytes;
    if (check.status.ok()) row["in_stages"] = check.in_stages;
    if (!check.unfit.ok()) row["unfit"] = check.unfit.message();
    if (!check.leftovers.empty()) row["training_leftovers"] = check.leftovers;
    if (!file.tuning.text.empty()) row["tuning"] = file.tuning.text;
    if (file.training) {
      row["trains"] = file.training->trains();
      row["training_lacks"] = file.training->lacks;
      row["training_notes"] = file.training->notes;
    }
    list.push_back(std::move(row));
  }
  absl::PrintF("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int RunCheck(const std::vector<std::string>& paths, const RepositoryCheckOptions& options,
             bool of_training) {
  const bool json = options.json;
  std::error_code error;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path, error)) continue;
    if (of_training) {
      return Refuse(absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is a folder; --training is of files")));
    }
    if (paths.size() == 1) return CheckRepository(path, options);
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a folder; a repository is checked alone")));
  }
  std::vector<CheckedFile> files;
  int exit_code = 0;
  for (const std::string& path : paths) {
    CheckedFile& file = files.emplace_back(
        CheckedFile{path, reader::CheckModel(path), CheckTuningOf(path), std::nullopt});
    if (of_training && file.check.status.ok()) file.training = CheckTrainingOf(path);
    if (!file.loads() || (file.training && !file.training->trains())) exit_code = 1;
  }
  json ? PrintJson(files) : PrintTable(files);
  return exit_code;
}

}  // namespace

void AddCheckCommand(CLI::App* app, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "check",
      "Say whether ONNX files, or the models of a repository, would be served, and what "
      "keeps them from it; needs no server");
  command->footer(R"(Examples:
  tilewire check exported/*.onnx
  tilewire check /srv/models
  tilewire check --training exported/*.onnx

Prints for each file the opset, the inputs and outputs with their types and shapes, and, where
a server would refuse it, every reason at once. Git-LFS pointers and files of other formats are
named. A note names Dropout and BatchNormalization nodes that were exported for training and act
so when they are served. A file that cannot be read is listed as refused, with the reason. Memory
and time of serving are not estimated. A tilewire.tuning beside a file, with which a server would
load it, is applied, too: what it makes of the layers, or the line that does not fit.

With --training each file is differentiated, too, as `tilewire train` would: how many parameters
it has, or every node that keeps it from being trained, with the reason, and what is peculiar.

Of a folder that is a model repository, or one model of it, every setting in each config.pbtxt
is printed: applied, without effect here, refused or unknown, and why; then a note for each
file of labels that is missing, and what keeps the version from being served.

Exit status: 0 everything would be served, and trained if that was asked, 1 something would not,
2 bad command line.)");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto options = std::make_shared<RepositoryCheckOptions>();
  command->add_option("files", *paths, "ONNX files, or a model repository")->required();
  command->add_flag("--json", options->json, "the same, for programs");
  auto of_training = std::make_shared<bool>(false);
  command->add_flag("--training", *of_training, "of files: whether they could be trained, too");
  command->add_flag("--strict_config", options->scan.strict_config,
                    "as tilewire-server takes it: unknown settings keep a model out");
  command->callback([=] { *exit_code = RunCheck(*paths, *options, *of_training); });
}

}  // namespace tilewire::client
