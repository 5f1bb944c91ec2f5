// Modules are recognised by their ELF headers in the process's own memory: what is mapped is what
// runs, even if the file was replaced or is out of our sight in a container. Only if the headers of
// an image are not readable in memory are they read from its file.
#include "proc/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "proc/mapped_elf.h"
#include "proc/memory.h"
#include "proc/page_map.h"
#include "proc/proc_text.h"
#include "proc/tuning.h"

namespace shadowprof::proc {
namespace {

// Takes fields off the front of a line of /proc/PID/maps.
class Fields {
  public:
    explicit Fields(std::string_view line) : rest_(line) {}

    std::optional<std::uint64_t> number(int base) {
        std::uint64_t value = 0;
        const auto [end, error] =
            std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
        if (error != std::errc{}) return {};
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    bool skip(char expected) {
        if (rest_.empty() || rest_.front() != expected) return false;
        rest_.remove_prefix(1);
        return true;
    }
    std::string_view take(std::size_t count) {
        const auto taken = rest_.substr(0, count);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view rest() {
        while (skip(' ')) {
        }
        return rest_;
    }

  private:
    std::string_view rest_;
};

std::optional<Mapping> parse_line(std::string_view line) {
    Fields fields{line};
    Mapping m;
    const auto begin = fields.number(16);
    if (!begin || !fields.skip('-')) return {};
    const auto end = fields.number(16);
    if (!end || *end <= *begin || !fields.skip(' ')) return {};
    m.range = {{*begin}, {*end}};
    const auto permissions = fields.take(4);
    if (permissions.size() < 4 || !fields.skip(' ')) return {};
    m.readable = permissions[0] == 'r';
    m.writable = permissions[1] == 'w';
    m.executable = permissions[2] == 'x';
    m.shared = permissions[3] == 's';
    const auto offset = fields.number(16);
    if (!offset || !fields.skip(' ')) return {};
    m.file_offset = *offset;
    const auto device_major = fields.number(16);
    if (!device_major || !fields.skip(':')) return {};
    const auto device_minor = fields.number(16);
    if (!device_minor || !fields.skip(' ')) return {};
    m.device = makedev(static_cast<unsigned>(*device_major), static_cast<unsigned>(*device_minor));
    const auto inode = fields.number(10);
    if (!inode) return {};
    m.inode = *inode;
    m.path = fields.rest();
    if (constexpr std::string_view mark = " (deleted)"; m.path.ends_with(mark)) {
        m.path.resize(m.path.size() - mark.size());
        m.deleted = true;
    }
    // A newline is the only character that the kernel escapes.
    constexpr std::string_view newline = "\\012";
    for (std::size_t at = 0; (at = m.path.find(newline, at)) != std::string::npos; ++at)
        m.path.replace(at, newline.size(), "\n");
    return m;
}

// The file behind a mapping, as the process sees it.
class MappedFile {
  public:
    MappedFile(pid_t pid, const Mapping& mapping) {
        const auto path = fmt::format("/proc/{}/root{}", pid, mapping.path);
        fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat file {};
        if (fd_ >= 0 &&
            (fstat(fd_, &file) != 0 || !S_ISREG(file.st_mode) || file.st_ino != mapping.inode)) {
            close(fd_);
            fd_ = -1;
        }
    }
    ~MappedFile() {
        if (fd_ >= 0) close(fd_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::size_t read(std::uint64_t offset, std::span<std::byte> into) const {
        const auto got = pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
        return got > 0 ? static_cast<std::size_t>(got) : 0;
    }

  private:
    int fd_ = -1;
};

class ModuleFinder {
  public:
    ModuleFinder(pid_t pid, const std::vector<Mapping>& mappings)
        : pid_(pid), memory_(pid), mappings_(mappings) {}

    std::vector<MappedModule> find() {
        for (const auto& mapping : mappings_) {
            if (!modules_.empty() && mapping.range.begin < modules_.back().range.end) continue;
            if (mapping.file_offset == 0 && (mapping.is_file() || mapping.path == "[vdso]"))
                try_memory(mapping);
        }
        find_by_file();
        return std::move(modules_);
    }

  private:
    void try_memory(const Mapping& mapping) {
        const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
            return memory_.read(mapping.range.begin + offset, into);
        };
        if (const auto segments = read_segments(read)) add(mapping, *segments);
    }

    // Code whose image begins with a mapping that is unreadable or missing.
    void find_by_file() {
        const auto found = modules_;
        for (const auto& mapping : mappings_) {
            if (!mapping.executable || !mapping.is_file()) continue;
            const auto is_known = [&](const MappedModule& m) {
                return m.range.contains(mapping.range.begin);
            };
            if (std::any_of(found.begin(), found.end(), is_known)) continue;
            const MappedFile file{pid_, mapping};
            const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
                return file.read(offset, into);
            };
            if (const auto segments = read_segments(read)) add(mapping, *segments, &file);
        }
        std::sort(modules_.begin(), modules_.end(),
                  [](const MappedModule& a, const MappedModule& b) {
                      return a.range.begin < b.range.begin;
                  });
    }

    // The mapping says where the load segment in it is placed, and that says where all others are.
    void add(const Mapping& mapping, const std::vector<LoadSegment>& segments,
             const MappedFile* file = nullptr) {
        const auto is_loaded = [](const LoadSegment& s) { return s.type == PT_LOAD; };
        const auto is_here = [&](const LoadSegment& s) {
            return is_loaded(s) && (s.file_offset & page_mask) <= mapping.file_offset &&
                   mapping.file_offset < s.file_offset + s.file_size;
        };
        const auto here = std::find_if(segments.begin(), segments.end(), is_here);
        if (here == segments.end()) return;
        MappedModule module;
        module.path = mapping.path;
        module.bias = mapping.range.begin.value - (here->address & page_mask) -
                      (mapping.file_offset - (here->file_offset & page_mask));
        std::uint64_t begin = ~std::uint64_t{0}, end = 0;
        bool runs = false;
        for (const auto& s : segments) {
            if (!is_loaded(s)) continue;
            begin = std::min(begin, (s.address + module.bias) & page_mask);
            end = std::max(end, round_up_to_page(s.address + module.bias + s.memory_size));
            runs = runs || (s.executable && has_code({s.address + module.bias}, mapping));
        }
        // A program may have mapped a part of its own code once more: node does so with what it
        // compiled beforehand. A tool may have mapped an ELF file as data.
        const bool is_part = !runs && file && here->executable;
        if (begin >= end || (!runs && !is_part)) return;
        module.range = is_part ? mapping.range : AddressRange{{begin}, {end}};
        for (const auto& s : segments) {
            if (s.type != PT_NOTE || !module.build_id.empty()) continue;
            std::vector<std::byte> notes(std::min(s.file_size, tuning::most_notes));
            const Address at{s.address + module.bias};
            notes.resize(file ? file->read(s.file_offset, notes) : memory_.read(at, notes));
            module.build_id = build_id_in(notes);
        }
        const auto is_same = [&](const MappedModule& m) { return m.range == module.range; };
        if (std::none_of(modules_.begin(), modules_.end(), is_same))
            modules_.push_back(std::move(module));
    }

    // Code of the same file, or what has been put in its place: a program may copy its code into
    // large pages.
    bool has_code(Address address, const Mapping& of) const {
        return std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapping& m) {
            const bool is_anonymous = m.path.empty() || m.path.starts_with("[anon");
            return m.executable && m.range.contains(address) && (is_anonymous || m.path == of.path);
        });
    }

    pid_t pid_;
    Memory memory_;
    const std::vector<Mapping>& mappings_;
    std::vector<MappedModule> modules_;
};

// As far as ModuleFinder looks at them. To find them takes ten times as long.
bool has_same_images(const std::vector<Mapping>& a, const std::vector<Mapping>& b) {
    const auto may_matter = [](const Mapping& m) {
        return m.is_file() || m.executable || m.path == "[vdso]";
    };
    auto one = std::find_if(a.begin(), a.end(), may_matter),
         other = std::find_if(b.begin(), b.end(), may_matter);
    while (one != a.end() && other != b.end()) {
        const auto &m = *one, &n = *other;
        if (m.range != n.range || m.file_offset != n.file_offset || m.inode != n.inode ||
            m.device != n.device || m.readable != n.readable || m.path != n.path ||
            m.executable != n.executable)
            return false;
        one = std::find_if(std::next(one), a.end(), may_matter);
        other = std::find_if(std::next(other), b.end(), may_matter);
    }
    return one == a.end() && other == b.end();
}

template <typename Ranged>
const Ranged* at(const std::vector<Ranged>& sorted, Address address) {
    auto after = std::upper_bound(
        sorted.begin(), sorted.end(), address,
        [](Address a, const Ranged& candidate) { return a < candidate.range.begin; });
    if (after == sorted.begin()) return nullptr;
    const auto& candidate = *--after;
    return candidate.range.contains(address) ? &candidate : nullptr;
}

}  // namespace

Maps Maps::parse(std::string_view text) {
    Maps maps;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        if (auto mapping = parse_line(text.substr(0, end)))
            maps.mappings_.push_back(std::move(*mapping));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return maps;
}

std::optional<Maps> Maps::of(pid_t pid, const Maps* before) {
    auto maps = without_modules(pid);
    if (!maps) return {};
    maps->modules_ = before && has_same_images(maps->mappings_, before->mappings_)
                         ? before->modules_
                         : ModuleFinder{pid, maps->mappings_}.find();
    return maps;
}

std::optional<Maps> Maps::without_modules(pid_t pid) {
    const auto text = read_proc_list(fmt::format("/proc/{}/maps", pid));
    if (text.empty()) return {};
    return parse(text);
}

void Maps::look_for_changed_code(pid_t pid) {
    const PageMap pages{pid};
    for (auto& mapping : mappings_) {
        if (!mapping.executable || !mapping.is_file() || mapping.shared) continue;
        pages.for_each(mapping.range, [&](Address page, PageMap::Entry entry) {
            if (entry.exists() && !entry.is_of_file()) mapping.changed_code.push_back(page);
        });
    }
}

const Mapping* Maps::mapping_at(Address address) const {
    return at(mappings_, address);
}
const MappedModule* Maps::module_at(Address address) const {
    return at(modules_, address);
}

}  // namespace shadowprof::proc
