// SPDX-License-Identifier: Apache-2.0
//
// `tilewire report`: what `tilewire load --json` wrote, compared, merged, judged, as CSV or a page.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/objective.h"
#include "client/load/record.h"
#include "client/load/report/report_html.h"
#include "client/load/report/report_text.h"
#include "client/tool/command.h"
#include "client/tool/load_flags.h"

namespace tilewire::client {
namespace {

constexpr char kReportExamples[] =
    R"(Without --merge the runs of all files stand beside each other, with what those
of the same name differ by from the first file's, in per cent. With --merge the
files are of generators that ran the same loads at the same time from several
machines: their counts, rates and histograms are added, so percentiles are exact.
A load that is in two of the files is refused: it would count twice.
The exit status is 1 if a condition of --require is not met by a run.

  tilewire report monday.json tuesday.json --html=comparison.html
  tilewire report --merge host1.json host2.json --json=both.json --csv=both.csv
  tilewire report run.json --require="p99<20ms,errors=0")";

struct ReportFlags {
  std::vector<std::string> files;
  bool merge = false;
  RecordFlags record;
};

absl::StatusOr<LoadRecord> ReadRecord(const std::string& file) {
  const auto bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  auto record = FromJson(*bytes);
  if (!record.ok())
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", record.status().message()));
  return record;
}

// The runs of all records; the file's name tells them apart.
LoadRecord Beside(const std::vector<LoadRecord>& records, const std::vector<std::string>& files) {
  if (records.size() == 1) return records[0];
  LoadRecord all;
  for (size_t i = 0; i < records.size(); ++i) {
    absl::StrAppend(&all.title, i == 0 ? "" : ", ", files[i]);
    all.origins.insert(all.origins.end(), records[i].origins.begin(), records[i].origins.end());
    for (LoadReport run : records[i].runs) {
      run.name = absl::StrCat(files[i], ": ", run.name);
      all.runs.push_back(std::move(run));
    }
  }
  for (size_t i = 1; i < records.size(); ++i) {
    all.comparisons.push_back({files[0], files[i], Differences(records[0].runs, records[i].runs)});
  }
  return all;
}

int RunReportCommand(const ReportFlags& flags) {
  if (flags.merge && flags.files.size() < 2)
    return Refuse(absl::InvalidArgumentError("--merge adds the runs of two files or more"));
  std::vector<LoadRecord> records;
  for (const std::string& file : flags.files) {
    auto record = ReadRecord(file);
    if (!record.ok()) return Refuse(record.status());
    records.push_back(*std::move(record));
  }
  const auto record = flags.merge ? MergeRecords(records) : Beside(records, flags.files);
  if (!record.ok()) return Refuse(record.status());
  absl::PrintF("%s\n", record->title);
  for (const LoadOrigin& origin : record->origins) absl::PrintF("%s", OriginText(origin));
  if (!record->bound.empty()) absl::PrintF("%s", SearchText(*record));
  if (record->runs.size() > 1) absl::PrintF("%s", ComparisonText(record->runs));
  for (const LoadComparison& comparison : record->comparisons)
    absl::PrintF("%s", ComparisonOfFilesText(comparison));
  if (record->runs.size() == 1)
    absl::PrintF("%s\n%s", record->runs[0].name, ReportText(record->runs[0]));
  if (absl::Status written = WriteRecord(*record, flags.record); !written.ok())
    return Refuse(written);
  const auto met = JudgeRecord(*record, flags.record);
  if (!met.ok()) return Refuse(met.status());
  return *met ? 0 : 1;
}

}  // namespace

absl::Status WriteRecord(const LoadRecord& record, const RecordFlags& flags) {
  absl::Status status;
  if (!flags.json.empty()) status.Update(WriteFile(flags.json, ToJson(record)));
  if (!flags.csv.empty()) status.Update(WriteFile(flags.csv, ToCsv(record)));
  if (!flags.html.empty()) status.Update(WriteFile(flags.html, ToHtml(record)));
  return status;
}

absl::StatusOr<bool> JudgeRecord(const LoadRecord& record, const RecordFlags& flags) {
  const auto objective = Objective::Parse(flags.require);
  if (!objective.ok()) return objective.status();
  bool met = true;
  for (const LoadReport& report : record.runs) {
    if (objective->empty()) break;
    if (record.runs.size() > 1) absl::PrintF("%s\n", report.name);
    const std::vector<Verdict> verdicts = objective->Judge(report);
    absl::PrintF("%s", VerdictText(verdicts));
    for (const Verdict& verdict : verdicts) met = met && verdict.met;
  }
  return met;
}

void AddReportCommand(CLI::App* app, int* exit_code) {
  CLI::App* command = app->add_subcommand("report", "Compare, merge and judge what load measured");
  command->footer(kReportExamples);
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("files", flags->files, "written by `tilewire load --json`")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_flag("--merge", flags->merge, "add the runs of all files");
  AddRecordOptions(command, &flags->record);
  command->callback([=] { *exit_code = RunReportCommand(*flags); });
}

}  // namespace tilewire::client
