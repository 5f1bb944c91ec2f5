#include "inject/shared_area.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/page.h"
#include "inject/planned_calls.h"
#include "inject/tuning.h"
#include "proc/maps.h"

namespace shadowprof::inject {
namespace {

constexpr std::size_t rests_at = 1024;
constexpr std::size_t answer_at = page_size;
constexpr std::size_t complete_words_at = answer_at + 64;
constexpr std::size_t slots_at = 2 * page_size;
constexpr std::size_t area_size = slots_at + SharedArea::slots * StubSlot::size;
static_assert(rests_at + SharedArea::rests * RestOfCall::room <= page_size);

}  // namespace

void await_change(const std::uint32_t& word, std::uint32_t value, Clock::duration longest) {
    const timespec time{0, std::chrono::nanoseconds{longest}.count()};
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

std::unique_ptr<SharedArea> SharedArea::put_into(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                                 std::size_t file_size, std::string& why) {
    SHADOWPROF_ASSERT(file_size >= area_size && file_size % page_size == 0, "the area comes first");
    std::unique_ptr<SharedArea> area{new SharedArea(tracer.pid())};
    enum : std::size_t { open_file, map, protect, ask, close_file };
    std::array<std::int64_t, 5> results{};
    Plan plan;
    plan.text = "shadowprof";
    plan.calls = {
        {SYS_memfd_create, {PlannedArgument::the_text(), MFD_CLOEXEC | MFD_ALLOW_SEALING}},
        {SYS_mmap,
         {0, area_size, PROT_READ | PROT_WRITE, MAP_SHARED, PlannedArgument::result_of(open_file),
          0}},
        {SYS_mprotect, {PlannedArgument::result_of(map), page_size, PROT_READ | PROT_EXEC}},
        {SYS_prctl, {PR_GET_CHILD_SUBREAPER, PlannedArgument::result_of(map, answer_at)}},
        {SYS_close, {PlannedArgument::result_of(open_file)}},
    };
    std::string trouble;
    const auto returned = [&](std::size_t call, std::int64_t result) {
        results.at(call) = result;
        if (call == open_file && result >= 0 && !area->open_file_of(stopped, result, file_size))
            trouble = fmt::format("memory shared with the program: {}", std::strerror(errno));
    };
    if (!carry_out(tracer, stopped, plan, returned, why)) return {};
    why = trouble;
    if (!why.empty()) return {};
    for (const auto call : {open_file, map, protect}) {
        if (results.at(call) >= 0) continue;
        constexpr const char* names[] = {"memfd_create", "mmap", "mprotect"};
        why = fmt::format("the program may not map a little shared memory ({}: {})", names[call],
                          std::strerror(static_cast<int>(-results.at(call))));
        return {};
    }
    area->place_.begin = {static_cast<std::uint64_t>(results.at(map))};
    area->place_.end = area->place_.begin + area_size;
    if (!area->map_here()) {
        why = fmt::format("mmap: {}", std::strerror(errno));
        return {};
    }
    return area;
}

bool SharedArea::open_file_of(const ptrace::Thread& stopped, std::int64_t descriptor,
                              std::size_t size) {
    const auto path = fmt::format("/proc/{}/task/{}/fd/{}", pid_, stopped.tid(), descriptor);
    file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
    return file_ >= 0 && ftruncate(file_, static_cast<off_t>(size)) == 0 &&
           fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
}

bool SharedArea::map_here() {
    void* const mapped = mmap(nullptr, area_size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED) return false;
    ours_ = static_cast<std::byte*>(mapped);
    const auto code = stub().code;
    SHADOWPROF_ASSERT(code.size() <= rests_at, "the rests of calls lie behind the stub");
    std::memcpy(ours_, code.data(), code.size());
    for (std::size_t number = 0; number < slots; ++number) new (&slot(number)) StubSlot;
    return true;
}

SharedArea::~SharedArea() {
    if (ours_) munmap(ours_, place_.size());
    if (file_ >= 0) close(file_);
}

StubSlot& SharedArea::slot(std::size_t number) const {
    return *std::launder(reinterpret_cast<StubSlot*>(ours_ + slots_at + number * StubSlot::size));
}

Address SharedArea::place_of_slot(std::size_t number) const {
    return place_.begin + (slots_at + number * StubSlot::size);
}

std::size_t SharedArea::offset_of_rest(std::size_t number) {
    return rests_at + number * RestOfCall::room;
}

Address SharedArea::place_of_rest(std::size_t number) const {
    return place_.begin + offset_of_rest(number);
}

std::uint32_t& SharedArea::complete_word(std::size_t rest) const {
    return *std::launder(reinterpret_cast<std::uint32_t*>(ours_ + complete_words_at) + rest);
}

Address SharedArea::place_of_complete_word(std::size_t rest) const {
    return place_.begin + (complete_words_at + rest * sizeof(std::uint32_t));
}

bool SharedArea::process_adopts_orphans() const {
    int answer = 0;
    std::memcpy(&answer, ours_ + answer_at, sizeof answer);
    return answer != 0;
}

bool SharedArea::is_there() const {
    struct stat ours {};
    const auto maps = proc::Maps::of(pid_);
    if (!maps || fstat(file_, &ours) != 0) return false;
    for (auto at = place_.begin; at < place_.end;) {
        const auto* const mapping = maps->mapping_at(at);
        if (mapping == nullptr || mapping->inode != ours.st_ino || !mapping->shared) return false;
        const bool is_code = at == place_.begin;
        if (is_code ? !mapping->executable : !mapping->writable) return false;
        at = mapping->range.end;
    }
    return true;
}

bool SharedArea::remove(ptrace::Tracer& tracer, ptrace::Thread& stopped) const {
    Plan plan;
    plan.calls = {{SYS_munmap, {place_.begin.value, place_.size()}}};
    std::string why;
    return carry_out(
        tracer, stopped, plan, [](std::size_t, std::int64_t) {}, why);
}

}  // namespace shadowprof::inject
