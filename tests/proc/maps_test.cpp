#include "proc/maps.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "proc/code_mappings.h"
#include "proc/memory.h"
#include "proc/page_map.h"
#include "support/tracing.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;

namespace {

const MappedModule* module_named(const Maps& maps, const std::string& part) {
    for (const auto& module : maps.modules())
        if (module.path.find(part) != std::string::npos) return &module;
    return nullptr;
}

}  // namespace

TEST_CASE("lines of /proc/PID/maps are understood") {
    const auto maps = Maps::parse(
        "55d0c0a00000-55d0c0a22000 r--p 00001000 fd:01 131 /usr/bin/a b\n"
        "55d0c0a22000-55d0c0a23000 rwxs 00000000 00:00 0 \n"
        "7f0000000000-7f0000001000 ---p 00000000 08:10 99                  /tmp/x\\012y (deleted)\n"
        "7ffc1000-7ffc2000 rw-p 00000000 00:00 0          [stack]\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
    REQUIRE(maps.mappings().size() == 5);
    const auto& program = maps.mappings()[0];
    CHECK(program.range == AddressRange{{0x55d0c0a00000}, {0x55d0c0a22000}});
    CHECK((program.readable && !program.writable && !program.executable && !program.shared));
    CHECK(program.file_offset == 0x1000);
    CHECK(program.device == makedev(0xfd, 1));
    CHECK(program.inode == 131);
    CHECK(program.path == "/usr/bin/a b");
    CHECK((!program.deleted && program.is_file()));
    const auto& anonymous = maps.mappings()[1];
    CHECK((anonymous.readable && anonymous.writable && anonymous.executable && anonymous.shared));
    CHECK((anonymous.path.empty() && !anonymous.is_file()));
    CHECK(maps.mappings()[2].path == "/tmp/x\ny");
    CHECK(maps.mappings()[2].deleted);
    CHECK(maps.mapping_at({0x55d0c0a22000}) == &anonymous);
    CHECK(maps.mapping_at({0x55d0c0a23000}) == nullptr);
    CHECK(maps.mapping_at({0}) == nullptr);
    CHECK(maps.mapping_at({0xffffffffff600abc})->path == "[vsyscall]");
}

TEST_CASE("damaged lines are left out") {
    CHECK(Maps::parse("").mappings().empty());
    CHECK(Maps::parse("\n\nnonsense\n1000-\n1000-2000\n1000-2000 rw\n2000-1000 r--p 0 0:0 0\n"
                      "1000-2000 r--p 00000000 00:00")
              .mappings()
              .empty());
}

// The dynamic linker knows the modules of this very process.
TEST_CASE("modules have the bias that the dynamic linker gave them") {
    const auto maps = Maps::of(getpid());
    REQUIRE(maps);
    struct Loaded {
        std::uint64_t bias, code;
    };
    std::vector<Loaded> loaded;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* all) {
            for (int n = 0; n < info->dlpi_phnum; ++n)
                if (const auto& p = info->dlpi_phdr[n]; p.p_type == PT_LOAD && (p.p_flags & PF_X))
                    static_cast<std::vector<Loaded>*>(all)->push_back(
                        {info->dlpi_addr, info->dlpi_addr + p.p_vaddr});
            return 0;
        },
        &loaded);
    CHECK(loaded.size() >= 4);
    CHECK(maps->modules().size() == loaded.size());
    for (const auto& [bias, code] : loaded) {
        const auto* module = maps->module_at({code});
        REQUIRE(module);
        CHECK(module->bias == bias);
        CHECK(module->range.contains({code}));
    }
    CHECK(module_named(*maps, "[vdso]")->range.contains({getauxval(AT_SYSINFO_EHDR)}));
    CHECK(std::is_sorted(maps->modules().begin(), maps->modules().end(),
                         [](const MappedModule& a, const MappedModule& b) {
                             return a.range.begin < b.range.begin;
                         }));
    CHECK(maps->module_at({getauxval(AT_BASE) - 1}) != maps->module_at({getauxval(AT_BASE)}));
}

TEST_CASE("build ids are those that readelf shows") {
    const auto maps = Maps::of(getpid());
    const auto* libc = module_named(*maps, "libc.so");
    REQUIRE(libc);
    const auto command = "readelf -n '" + libc->path + "' 2>/dev/null | sed -n 's/.*Build ID: //p'";
    const auto readelf = run_native({"sh", "-c", command});
    if (readelf.output.empty()) return;  // no binutils
    CHECK(libc->build_id + "\n" == readelf.output);
}

TEST_CASE("an image whose headers cannot be read in memory is known from its file") {
    // A library that nothing else here looks into while it is unreadable.
    void* library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    const auto with_headers = Maps::of(getpid());
    const auto* before = module_named(*with_headers, "libresolv");
    REQUIRE(before);
    const auto* first = with_headers->mapping_at(before->range.begin);
    auto* page = reinterpret_cast<void*>(first->range.begin.value);
    REQUIRE(mprotect(page, first->range.size(), PROT_NONE) == 0);
    const auto without = Maps::of(getpid());
    mprotect(page, first->range.size(), PROT_READ);
    const auto* after = module_named(*without, "libresolv");
    REQUIRE(after);
    CHECK(after->bias == before->bias);
    CHECK(after->range == before->range);
    CHECK(after->build_id == before->build_id);
    CHECK(!after->build_id.empty());
    dlclose(library);
}

TEST_CASE("pages of code that somebody has changed are known, whatever is there now") {
    void* library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    const auto before = Maps::of(getpid());
    const auto* image = module_named(*before, "libresolv");
    REQUIRE(image);
    const auto code = std::find_if(
        before->mappings().begin(), before->mappings().end(),
        [&](const Mapping& m) { return m.executable && image->range.contains(m.range.begin); });
    REQUIRE(code != before->mappings().end());
    const auto at = code->range.begin;
    auto* page = reinterpret_cast<volatile char*>(at.value);
    auto* pages = reinterpret_cast<void*>(at.value);
    REQUIRE(mprotect(pages, page_size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    *page = *page;
    REQUIRE(mprotect(pages, page_size, PROT_READ | PROT_EXEC) == 0);
    auto after = Maps::of(getpid());
    after->look_for_changed_code(getpid());
    CHECK(after->mapping_at(at)->changed_code == std::vector{at});
    for (const auto& mapping : after->mappings())
        if (!mapping.range.contains(at)) CHECK(mapping.changed_code.empty());
    dlclose(library);
}

TEST_CASE("code that was mapped, unmapped or made writable is told without reading all mappings") {
    if (!CodeMappings::can_be_asked()) return;
    const CodeMappings code{getpid()};
    const auto before = *Maps::of(getpid());
    CHECK(code.are_as_in(before));
    auto* const data = mmap(nullptr, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code.are_as_in(before));
    REQUIRE(mprotect(data, page_size, PROT_READ | PROT_EXEC) == 0);
    CHECK(!code.are_as_in(before));
    const auto with_it = *Maps::of(getpid());
    CHECK(code.are_as_in(with_it));
    REQUIRE(mprotect(data, page_size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    CHECK(!code.are_as_in(with_it));
    munmap(data, page_size);
    CHECK(!code.are_as_in(with_it));
    CHECK(code.are_as_in(before));
}

TEST_CASE("other code at the same place is told, and that the process has gone") {
    if (!CodeMappings::can_be_asked()) return;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    auto* const place =
        mmap(nullptr, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4 * page_size);
    const auto before = *Maps::of(getpid());
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    const CodeMappings own{getpid()}, childs{child};
    CHECK(childs.are_as_in(before));
    REQUIRE(mmap(place, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == place);
    CHECK(!own.are_as_in(before));
    CHECK(childs.are_as_in(before));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(!childs.are_as_in(before));
    munmap(place, page_size);
    close(fd);
}

TEST_CASE("an ELF file that is mapped as data is no module") {
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    auto* data = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    REQUIRE(data != MAP_FAILED);
    const auto maps = Maps::of(getpid());
    CHECK(maps->module_at({reinterpret_cast<std::uint64_t>(data)}) == nullptr);
    munmap(data, 4096);
}

TEST_CASE("a part of a program's code that it has mapped once more is that code") {
    const auto own = reinterpret_cast<std::uint64_t>(&module_named);
    const auto before = Maps::of(getpid());
    const auto* code = before->mapping_at({own});
    const auto* image = before->module_at({own});
    REQUIRE(code);
    REQUIRE(image);
    const auto page = own & ~std::uint64_t{page_size - 1};
    const auto offset = code->file_offset + (page - code->range.begin.value);
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    auto* copy = mmap(nullptr, page_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
                      static_cast<off_t>(offset));
    close(fd);
    REQUIRE(copy != MAP_FAILED);
    const Address there{reinterpret_cast<std::uint64_t>(copy) + own - page};
    const auto maps = Maps::of(getpid());
    const auto* part = maps->module_at(there);
    REQUIRE(part);
    CHECK(part->path == image->path);
    CHECK(part->build_id == image->build_id);
    CHECK(there.value - part->bias == own - image->bias);
    CHECK(part->range.size() == page_size);
    CHECK(maps->module_at({own})->range == image->range);
    munmap(copy, page_size);
}

TEST_CASE("a process that is gone has no maps") {
    CHECK(!Maps::of(0x7ffffff0));
}

TEST_CASE("a process that goes while its maps are read has all of them, or none") {
    // As many as the kernel does not write in one go.
    constexpr std::size_t pages = 400;
    auto* area = static_cast<std::byte*>(
        mmap(nullptr, pages * page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(area != MAP_FAILED);
    for (std::size_t page = 0; page < pages; page += 2)
        REQUIRE(mprotect(area + page * page_size, page_size, PROT_NONE) == 0);
    unsigned in_part = 0, seen = 0;
    for (unsigned round = 0; round < 100; ++round) {
        const auto victim = fork();
        if (victim == 0)
            for (;;) pause();
        const auto all = Maps::without_modules(victim);
        REQUIRE(all);
        const auto killer = fork();
        if (killer == 0) {
            for (volatile unsigned wait = round * 3000; wait > 0;) wait = wait - 1;
            kill(victim, SIGKILL);
            _exit(0);
        }
        while (const auto maps = Maps::without_modules(victim)) {
            ++seen;
            in_part += maps->mappings().size() != all->mappings().size();
        }
        waitpid(victim, nullptr, 0);
        waitpid(killer, nullptr, 0);
    }
    munmap(area, pages * page_size);
    CHECK(seen > 0);
    CHECK(in_part == 0);
}

TEST_CASE("pages that another process shares are mapped there before it comes to them") {
    constexpr std::size_t pages = 100;
    auto* const area = static_cast<volatile char*>(mmap(
        nullptr, pages * page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const Address begin{reinterpret_cast<std::uint64_t>(area)};
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    for (std::size_t n = 0; n < pages; ++n) area[n * page_size] = 1;
    const auto mapped = [&] {
        std::size_t count = 0;
        PageMap{child}.for_each(
            {begin, begin + pages * page_size},
            [&](Address, PageMap::Entry page) { count += page.is_in_memory(); });
        return count;
    };
    CHECK(mapped() == 0);
    Memory{child}.bring_in({begin, begin + pages * page_size});
    CHECK(mapped() == pages);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    munmap(const_cast<char*>(area), pages * page_size);
}

TEST_CASE("memory is read up to the first page that cannot be, and written where it may be") {
    constexpr std::size_t page = 4096;
    auto* area = static_cast<std::byte*>(
        mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill(area, area + 3 * page, std::byte{7});
    mprotect(area + 2 * page, page, PROT_NONE);
    const Memory memory{getpid()};
    const Address start{reinterpret_cast<std::uint64_t>(area)};
    std::vector<std::byte> bytes(3 * page);
    CHECK(memory.read(start + 100, bytes) == 2 * page - 100);
    CHECK(bytes[0] == std::byte{7});
    CHECK(bytes[2 * page - 101] == std::byte{7});
    CHECK(memory.read(start + 2 * page, bytes) == 0);
    CHECK(memory.read_as<std::uint32_t>(start) == 0x07070707u);
    CHECK(!memory.read_as<std::uint32_t>(start + 2 * page - 2));

    const std::vector<std::byte> fresh(page, std::byte{9});
    CHECK(memory.write(start + 10, fresh));
    CHECK((area[9] == std::byte{7} && area[10] == std::byte{9}));
    CHECK(!memory.write(start + page + 10, fresh));
    mprotect(area, page, PROT_READ);
    CHECK(!memory.write(start, fresh));
    CHECK(area[0] == std::byte{7});
    munmap(area, 3 * page);
    CHECK(Memory{0x7ffffff0}.read(start, bytes) == 0);
}
