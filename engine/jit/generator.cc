// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/generator.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/diagnostics.h"
#include "engine/base/line_writer.h"
#include "engine/base/status_macros.h"
#include "engine/jit/dump_record.h"

namespace tilewire::jit {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File OpenFile(const std::string& path, const char* mode) {
  return File(std::fopen(path.c_str(), mode), &std::fclose);
}

bool WriteFile(const std::string& path, const Generator& generator) {
  File file = OpenFile(path, "wb");
  if (file == nullptr) return false;
  const size_t written = std::fwrite(generator.getCode(), 1, generator.getSize(), file.get());
  return std::fclose(file.release()) == 0 && written == generator.getSize();
}

// Dumps are a tool for people: a file that cannot be written must not fail a request.
void Dump(const Generator& generator) {
  const std::string& folder = ActiveDiagnostics().dump_jit;
  if (folder.empty()) return;
  static std::atomic<int> number{0};
  const std::string name = absl::StrCat(absl::StrReplaceAll(generator.name(), {{"/", "_"}}), ".",
                                        number.fetch_add(1), ".bin");
  const std::string path = absl::StrCat(folder, "/", name);
  if (WriteFile(path, generator)) return DumpRecord::Add(name);
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    WriteLine(absl::StrCat("tilewire: dumps of code: '", path, "': ", std::strerror(errno),
                           "; later ones may be missing, too\n"));
}

// The format of linux/tools/perf/Documentation/jit-interface.txt: "<start> <size> <name>", in hex.
void AppendToPerfMap(const Generator& generator) {
  if (!ActiveDiagnostics().perf_map) return;
  const File file = OpenFile(absl::StrCat("/tmp/perf-", getpid(), ".map"), "a");
  if (file == nullptr) return;
  const std::string line =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(generator.getCode())), " ",
                   absl::Hex(generator.getSize()), " ", generator.name(), "\n");
  std::fwrite(line.data(), 1, line.size(), file.get());
}

// A type's name as sources have it.
std::string Demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

Generator::Generator(absl::string_view name, size_t max_code_bytes)
    : Xbyak::CodeGenerator(max_code_bytes, Xbyak::DontSetProtectRWE), name_(name) {}

void Generator::EmitAndSeal() {
  Emit();
  if (hasUndefinedLabel()) throw Xbyak::Error(Xbyak::ERR_LABEL_IS_NOT_FOUND);
  setProtectModeRE();
  Dump(*this);
  AppendToPerfMap(*this);
}

void Generator::Preamble() {
  for (const Xbyak::Reg64& reg : {rbx, rbp, r12, r13, r14, r15}) push(reg);
}

void Generator::Postamble() {
  for (const Xbyak::Reg64& reg : {r15, r14, r13, r12, rbp, rbx}) pop(reg);
  vzeroupper();
  ret();
}

absl::Status CheckDumpFolder(const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0) {
    return absl::OkStatus();
  }
  return InvalidArgument("dumps of code: '", folder, "' is not a folder that can be written");
}

absl::Status ToStatus(absl::string_view name, const Xbyak::Error& error) {
  const std::string message = absl::StrCat(Demangled(std::string(name)), ": ", error.what());
  switch (static_cast<int>(error)) {
    case Xbyak::ERR_CANT_ALLOC:
    case Xbyak::ERR_CANT_PROTECT:
      return ResourceExhausted("the system has no memory for generated code");
    case Xbyak::ERR_CODE_IS_TOO_BIG:
      return Unimplemented(message);
    default:
      return Internal(message);
  }
}

}  // namespace tilewire::jit
