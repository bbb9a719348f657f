// SPDX-License-Identifier: Apache-2.0
#include "service/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace tilewire::service {
namespace {

// Names and descriptions of notes end on multiples of four bytes.
size_t Padded(size_t size) { return (size + 3) / 4 * 4; }

std::string IdIn(absl::string_view notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes.data());
    notes.remove_prefix(sizeof(*note));
    const size_t name = Padded(note->n_namesz), size = Padded(note->n_descsz);
    if (notes.size() < name + size) return "";
    const bool is_id = note->n_type == NT_GNU_BUILD_ID &&
                       notes.substr(0, note->n_namesz) == absl::string_view(ELF_NOTE_GNU, 4);
    if (is_id) return absl::BytesToHexString(notes.substr(name, note->n_descsz));
    notes.remove_prefix(name + size);
  }
  return "";
}

// The program itself comes first; no other object is looked at.
int VisitProgram(dl_phdr_info* object, size_t, void* id) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr);
    std::string found = IdIn({notes, header.p_memsz});
    if (!found.empty()) *static_cast<std::string*>(id) = found;
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  std::string id;
  dl_iterate_phdr(VisitProgram, &id);
  return id;
}

}  // namespace tilewire::service
