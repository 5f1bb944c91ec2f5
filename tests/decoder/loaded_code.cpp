#include "loaded_code.h"

#include <dlfcn.h>
#include <link.h>

#include <vector>

#include "decoder/decoder.h"

namespace shadowprof::decoder {
namespace {

using Code = std::span<const std::byte>;

int collect_segments(dl_phdr_info* info, std::size_t, void* into) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        const bool executable = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
        if (!executable) continue;
        const auto begin = info->dlpi_addr + segment.p_vaddr;
        static_cast<std::vector<Code>*>(into)->emplace_back(
            reinterpret_cast<const std::byte*>(begin), segment.p_memsz);
    }
    return 0;
}

// Code with vector and cryptographic instructions, where there is any.
void load_more_code() {
    dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace

void for_each_loaded_instruction(const std::function<void(const Instruction&)>& visit) {
    load_more_code();
    std::vector<Code> segments;
    dl_iterate_phdr(collect_segments, &segments);
    for (auto code : segments) {
        while (!code.empty()) {
            const Address at{reinterpret_cast<std::uint64_t>(code.data())};
            const auto instruction = decode(code, at);
            if (instruction) visit(*instruction);
            code = code.subspan(instruction ? instruction->length : 1);
        }
    }
}

}  // namespace shadowprof::decoder
