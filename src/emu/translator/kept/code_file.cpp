#include "emu/translator/kept/code_file.h"

#include <cpuid.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cstring>

#include "base/descriptor.h"
#include "base/kept_files.h"
#include "decoder/decoder.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

namespace {

// What the meaning of a file depends on.
struct Head {
    std::array<char, 32> kind{"shadowprof-translations 1\n"};
    std::uint64_t maker, processor, checksum;
};

// Another build may translate otherwise, or lay its structures out otherwise.
std::uint64_t this_build() {
    struct stat status {};
    if (stat("/proc/self/exe", &status) != 0) return 0;
    std::uint64_t hash = decoder::library_version();
    for (const auto part :
         {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          static_cast<std::uint64_t>(status.st_mtim.tv_sec),
          static_cast<std::uint64_t>(status.st_mtim.tv_nsec)})
        hash = combine_hashes(hash, part);
    return hash;
}

// All that says which instructions it has.
std::uint64_t this_processor() {
    std::uint64_t hash = 0;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d))  // b differs from core to core
        for (const auto part : {a, c, d}) hash = combine_hashes(hash, part);
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        for (const auto part : {b, c, d}) hash = combine_hashes(hash, part);
    return hash;
}

Head head_of(std::uint64_t checksum) {
    return {.maker = this_build(), .processor = this_processor(), .checksum = checksum};
}

std::string_view map_all(int file) {
    struct stat status {};
    if (file < 0 || fstat(file, &status) != 0) return {};
    const auto size = static_cast<std::size_t>(status.st_size);
    auto* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (mapped == MAP_FAILED) return {};
    return {static_cast<const char*>(mapped), size};
}

}  // namespace

CodeFile::CodeFile(const std::string& name) {
    const Descriptor opened(open_kept_file(name, tuning::largest_kept_module));
    contents_ = map_all(opened);
    Head head;
    if (contents_.size() <= sizeof head) return;
    std::memcpy(&head, contents_.data(), sizeof head);
    const auto rest = contents_.substr(sizeof head);
    const auto expected = head_of(head.checksum);
    if (std::memcmp(&head, &expected, sizeof head) == 0 &&
        SectionReader{rest}.checksum() == head.checksum)
        sections_ = rest;
}

CodeFile::~CodeFile() {
    if (!contents_.empty()) munmap(const_cast<char*>(contents_.data()), contents_.size());
}

void write_code_file(const std::string& name, const SectionWriter& sections) {
    if (sections.size() > tuning::largest_kept_module) return;
    const auto head = head_of(sections.checksum());
    std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&head), sizeof head}};
    parts.insert(parts.end(), sections.parts().begin(), sections.parts().end());
    write_kept_file(name, parts);
}

}  // namespace shadowprof::emu::translator
