// The note NT_GNU_BUILD_ID among the notes of a loaded ELF object.
#include "lantern/codegen/toolchain/build_identity.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lantern::codegen {

namespace {

struct Search {
  std::uintptr_t address;
  std::string found;
};

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

std::string build_id_among(std::string_view notes, std::size_t alignment) {
  const auto padded = [&](std::size_t n) { return (n + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) head;
  while (notes.size() >= sizeof head) {
    std::memcpy(&head, notes.data(), sizeof head);
    notes.remove_prefix(sizeof head);
    const std::size_t name = padded(head.n_namesz);
    if (name > notes.size() || head.n_descsz > notes.size() - name) return {};
    if (head.n_type == NT_GNU_BUILD_ID && notes.substr(0, head.n_namesz) == std::string_view("GNU", 4))
      return hexadecimal(notes.substr(name, head.n_descsz));
    notes.remove_prefix(std::min(notes.size(), name + padded(head.n_descsz)));
  }
  return {};
}

int look(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    here |= segment.p_type == PT_LOAD && search.address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz;
  }
  if (!here) return 0;
  for (int i = 0; i < info->dlpi_phnum && search.found.empty(); ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader has put the segment
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    search.found = build_id_among({notes, segment.p_memsz}, segment.p_align == 8 ? 8 : 4);
  }
  return 1;
}

}  // namespace

std::string build_identity(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace lantern::codegen
