#include "emu/translator/kept/kept_translations.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
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

// The program is what was mapped first, except for its loader; that which has a build id.
std::string name_for(GuestCode& code) {
    const auto maps = code.maps();
    const auto& modules = maps->modules();
    const auto plan = code.plan();
    if (modules.empty() || modules.front().build_id.empty() || plan.choice() || plan.functions())
        return {};
    return fmt::format("translated-{}-{:02x}", modules.front().build_id, plan.captures());
}

// A file's contents, as they are mapped.
class MappedFile {
  public:
    explicit MappedFile(int file) {
        struct stat status {};
        if (file < 0 || fstat(file, &status) != 0) return;
        auto* const mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ,
                                  MAP_PRIVATE | MAP_POPULATE, file, 0);
        if (mapped == MAP_FAILED) return;
        contents_ = {static_cast<const char*>(mapped), static_cast<std::size_t>(status.st_size)};
    }
    ~MappedFile() {
        if (!contents_.empty()) munmap(const_cast<char*>(contents_.data()), contents_.size());
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::string_view contents() const { return contents_; }

  private:
    std::string_view contents_;
};

}  // namespace

void KeptTranslations::restore() {
    name_ = name_for(code_);
    if (name_.empty()) return;
    const shadowprof::Descriptor opened(open_kept_file(name_, tuning::largest_kept_cache));
    const MappedFile file(opened);
    if (file.contents().size() < sizeof(Head)) return;
    Head head;
    std::memcpy(&head, file.contents().data(), sizeof head);
    SectionReader in{file.contents().substr(sizeof head)};
    const auto expected = head_of(head.checksum);
    if (std::memcmp(&head, &expected, sizeof head) != 0 || in.checksum() != head.checksum) return;
    const auto blocks = code_.restore(in);
    if (blocks && translator_.restore(in, *blocks))
        restored_ = translator_.worth_keeping().units.size();
}

void KeptTranslations::keep() const {
    if (name_.empty()) return;
    const auto kept = translator_.worth_keeping();
    const std::uint64_t units = kept.units.size();
    if ((units - std::min(units, restored_)) * tuning::least_part_of_news <= restored_) return;
    SectionWriter out;
    if (!code_.write(out, kept.blocks)) return;
    translator_.write(out, kept);
    if (out.size() > tuning::largest_kept_cache) return;
    const auto head = head_of(out.checksum());
    std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&head), sizeof head}};
    parts.insert(parts.end(), out.parts().begin(), out.parts().end());
    write_kept_file(name_, parts);
}

}  // namespace shadowprof::emu::translator
