#include "emu/interpreter/host_code.h"

#include <cpuid.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "emu/interpreter/core_helpers.h"

namespace shadowprof::emu {

namespace {

using decoder::rax, decoder::rbp, decoder::rbx, decoder::rcx, decoder::rdi, decoder::rdx,
    decoder::rsi, decoder::rsp;

enum class Area { save, restore };

// xsave64 or xrstor64 of Core::extended; `core` holds the Core's address. Uses rax, rcx, rdx.
void move_extended_state(HostAssembler& a, HostRegister core, Area direction) {
    a.load_from(rcx, core, offsetof(Core, extended), 8);
    a.load_from(rax, core, offsetof(Core, extended_mask), 4);
    a.load_from(rdx, core, offsetof(Core, extended_mask) + 4, 4);
    a.raw(0x48, 0x0f, 0xae, direction == Area::save ? 0x21 : 0x29);
}

// The calling convention wants an empty x87 stack, the host's control words, and clear upper
// halves.
void load_host_control_words(HostAssembler& a, HostRegister core) {
    const auto operand = [&](unsigned reg, std::size_t offset) {
        a.raw(0x80 | reg << 3 | core);
        if (core == rsp) a.raw(0x24);
        const auto displacement = static_cast<std::uint32_t>(offset);
        a.bytes(std::as_bytes(std::span{&displacement, 1}));
    };
    a.raw(0xdb, 0xe3);  // fninit
    a.raw(0xd9);        // fldcw
    operand(5, offsetof(Core, host_x87_control));
    a.raw(0x0f, 0xae);  // ldmxcsr
    operand(2, offsetof(Core, host_mxcsr));
    if (__builtin_cpu_supports("avx")) a.raw(0xc5, 0xf8, 0x77);  // vzeroupper
}

void store_host_control_words(HostAssembler& a) {  // Core in rdi
    const auto operand = [&](unsigned reg, std::size_t offset) {
        a.raw(0x80 | reg << 3 | rdi);
        const auto displacement = static_cast<std::uint32_t>(offset);
        a.bytes(std::as_bytes(std::span{&displacement, 1}));
    };
    a.raw(0x0f, 0xae);  // stmxcsr
    operand(3, offsetof(Core, host_mxcsr));
    a.raw(0xd9);  // fnstcw
    operand(7, offsetof(Core, host_x87_control));
}

void push(HostAssembler& a, HostRegister reg) {
    if (reg >= 8) a.raw(0x41);
    a.raw(0x50 | (reg & 7));
}
void pop(HostAssembler& a, HostRegister reg) {
    if (reg >= 8) a.raw(0x41);
    a.raw(0x58 | (reg & 7));
}
void adjust_stack(HostAssembler& a, std::int8_t by) {
    a.raw(0x48, 0x8d, 0x64, 0x24, by);  // lea rsp, [rsp + by]
}

constexpr HostRegister callee_saved[] = {3, 5, 12, 13, 14, 15};

}  // namespace

namespace {

struct ExtendedFeatures {
    std::uint64_t components = 0;
    std::size_t area_size = 0;
};

// Asked once: where cpuid is emulated it takes tens of microseconds.
const ExtendedFeatures& extended_features() {
    static const auto features = [] {
        unsigned low = 0, size = 0, ecx = 0, high = 0;
        __get_cpuid_count(0xd, 0, &low, &size, &ecx, &high);
        return ExtendedFeatures{low | std::uint64_t{high} << 32, size};
    }();
    return features;
}

}  // namespace

std::uint64_t switched_components() {
    constexpr std::uint64_t data_components = 0xe7;  // x87, SSE, AVX, and three of AVX-512
    return extended_features().components & data_components;
}

std::size_t extended_area_size() {
    return extended_features().area_size;
}

HostCode::HostCode(std::size_t size) : size_(size) {
    auto* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw UserError(std::string("no executable memory for the interpreter: ") +
                        std::strerror(errno) +
                        "; allow it (SELinux execmem, systemd MemoryDenyWriteExecute) or use "
                        "--mode step");
    memory_ = next_ = static_cast<std::uint8_t*>(memory);
    write_stubs();
    first_ = next_;
}

HostCode::~HostCode() {
    ::munmap(memory_, size_);
}

void HostCode::run(Core& core, const void* code) const {
    core.call_with_host_state = call_with_host_state_;
    enter_(&core, code);
}

const std::uint8_t* HostCode::write_helper_call(HostAssembler& a, const void* helper) {
    const auto* start = a.position();
    a.lea(rdi, rsp, HostAssembler::none, 1, 8);
    adjust_stack(a, -8);
    a.move_imm(rax, std::bit_cast<std::uint64_t>(helper));
    a.raw(0xff, 0xd0);  // call rax
    adjust_stack(a, 8);
    a.raw(0xc3);
    return start;
}

void HostCode::write_stubs() {
    auto a = begin();

    enter_ = std::bit_cast<decltype(enter_)>(a.position());
    for (const auto reg : callee_saved) push(a, reg);
    adjust_stack(a, -8);
    a.store_to(rdi, offsetof(Core, host_rsp), rsp);
    store_host_control_words(a);
    move_extended_state(a, rdi, Area::restore);
    a.move(rsp, rdi);
    a.raw(0xff, 0xe6);  // jmp rsi

    leave = a.position();
    move_extended_state(a, rsp, Area::save);
    load_host_control_words(a, rsp);
    a.load(rsp, offsetof(Core, host_rsp));
    adjust_stack(a, 8);
    for (auto reg = std::end(callee_saved); reg != std::begin(callee_saved);) pop(a, *--reg);
    a.raw(0xc3);

    call_with_host_state_ = std::bit_cast<decltype(call_with_host_state_)>(a.position());
    push(a, rbx);
    push(a, rbp);
    push(a, 12);
    a.move(rbx, rdi);
    a.move(rbp, rsi);
    a.move(12, rdx);
    move_extended_state(a, rbx, Area::save);
    load_host_control_words(a, rbx);
    a.move(rdi, rbx);
    a.move(rsi, 12);
    a.raw(0xff, 0xd5);  // call rbp
    move_extended_state(a, rbx, Area::restore);
    pop(a, 12);
    pop(a, rbp);
    pop(a, rbx);
    a.raw(0xc3);

    const auto helper = [&](auto* function) {
        return write_helper_call(a, std::bit_cast<const void*>(function));
    };
    resolve = helper(&shadowprof_resolve);
    finish_write = helper(&shadowprof_finish_write);
    peek = helper(&shadowprof_peek);
    error = helper(&shadowprof_error);
    string = helper(&shadowprof_string);
    rflags = helper(&shadowprof_rflags);
    set_rflags = helper(&shadowprof_set_rflags);
    enter = helper(&shadowprof_enter);
    move_64_bytes = helper(&shadowprof_move_64_bytes);
    ordinary = helper(call_with_host_state_);
    commit(a);
}

}  // namespace shadowprof::emu
