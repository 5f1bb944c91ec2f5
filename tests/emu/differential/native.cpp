#include "native.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "emu/interpreter/core.h"
#include "emu/interpreter/host_code.h"

namespace {

// Addressed by the code below; its offsets are written out there.
struct Machine {
    std::uint64_t general[16];  // 0
    std::uint64_t rflags;       // 128
    std::uint64_t fs_base;      // 136
    std::uint64_t gs_base;      // 144
    std::uint64_t rip;          // 152
    std::uint64_t host_rsp;     // 160
    std::uint64_t host_fs;      // 168
    std::uint64_t host_gs;      // 176
    std::uint64_t components;   // 184
    std::byte* extended;        // 192
    std::uint32_t host_mxcsr;   // 200
    std::uint32_t host_x87;     // 204
    std::uint64_t is_running;   // 208
};

}  // namespace

extern "C" {
Machine differential_machine __attribute__((visibility("hidden")));
void differential_run();
void differential_save();
void differential_back();
void differential_take_bases();
}

asm(R"(
        .pushsection .text
        .macro field name, offset
        .set \name, differential_machine + \offset
        .endm
        field M_RFLAGS, 128
        field M_FS, 136
        field M_GS, 144
        field M_RIP, 152
        field M_HOST_RSP, 160
        field M_HOST_FS, 168
        field M_HOST_GS, 176
        field M_COMPONENTS, 184
        field M_EXTENDED, 192
        field M_HOST_MXCSR, 200
        field M_HOST_X87, 204

        # A kernel that does not know that programs may write the bases loses, at the next switch
        # to another thread, what instructions have written (virtual machines may let them write):
        # so it is told as well. It refuses addresses of its own.
        .macro set_base name, request, field
        mov $158, %eax      # arch_prctl
        mov $\request, %edi
        mov \field(%rip), %rsi
        syscall
        wr\name\()base %rsi
        .endm
        .macro get_base name, field
        rd\name\()base %rax
        mov %rax, \field(%rip)
        .endm
        .macro set_bases fs_field, gs_field
        set_base fs, 0x1002, \fs_field
        set_base gs, 0x1001, \gs_field
        .endm
        .macro get_bases fs_field, gs_field
        get_base fs, \fs_field
        get_base gs, \gs_field
        .endm

        .globl differential_run
differential_run:
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        push %r15
        mov %rsp, M_HOST_RSP(%rip)
        stmxcsr M_HOST_MXCSR(%rip)
        fnstcw M_HOST_X87(%rip)
        get_bases M_HOST_FS, M_HOST_GS
        set_bases M_FS, M_GS
        mov M_EXTENDED(%rip), %rcx
        mov M_COMPONENTS(%rip), %eax
        mov M_COMPONENTS + 4(%rip), %edx
        xrstor64 (%rcx)
        pushq M_RFLAGS(%rip)
        popfq
        mov differential_machine + 0(%rip), %rax
        mov differential_machine + 8(%rip), %rcx
        mov differential_machine + 16(%rip), %rdx
        mov differential_machine + 24(%rip), %rbx
        mov differential_machine + 32(%rip), %rsp
        mov differential_machine + 40(%rip), %rbp
        mov differential_machine + 48(%rip), %rsi
        mov differential_machine + 56(%rip), %rdi
        mov differential_machine + 64(%rip), %r8
        mov differential_machine + 72(%rip), %r9
        mov differential_machine + 80(%rip), %r10
        mov differential_machine + 88(%rip), %r11
        mov differential_machine + 96(%rip), %r12
        mov differential_machine + 104(%rip), %r13
        mov differential_machine + 112(%rip), %r14
        mov differential_machine + 120(%rip), %r15
        jmp *M_RIP(%rip)

        .globl differential_save
differential_save:
        mov %rax, differential_machine + 0(%rip)
        mov %rcx, differential_machine + 8(%rip)
        mov %rdx, differential_machine + 16(%rip)
        mov %rbx, differential_machine + 24(%rip)
        mov %rsp, differential_machine + 32(%rip)
        mov %rbp, differential_machine + 40(%rip)
        mov %rsi, differential_machine + 48(%rip)
        mov %rdi, differential_machine + 56(%rip)
        mov %r8, differential_machine + 64(%rip)
        mov %r9, differential_machine + 72(%rip)
        mov %r10, differential_machine + 80(%rip)
        mov %r11, differential_machine + 88(%rip)
        mov %r12, differential_machine + 96(%rip)
        mov %r13, differential_machine + 104(%rip)
        mov %r14, differential_machine + 112(%rip)
        mov %r15, differential_machine + 120(%rip)
        mov M_HOST_RSP(%rip), %rsp
        pushfq
        popq M_RFLAGS(%rip)
        pushq $0x202        # neither direction nor alignment check
        popfq
        call differential_take_bases
        mov M_EXTENDED(%rip), %rcx
        mov M_COMPONENTS(%rip), %eax
        mov M_COMPONENTS + 4(%rip), %edx
        xsave64 (%rcx)

        .globl differential_back
differential_back:
        fninit
        fldcw M_HOST_X87(%rip)
        ldmxcsr M_HOST_MXCSR(%rip)
        vzeroupper
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret

        # What a signal handler begins with.
        .globl differential_take_bases
differential_take_bases:
        get_bases M_FS, M_GS
        set_bases M_HOST_FS, M_HOST_GS
        ret
        .popsection
)");

namespace shadowprof::differential {

namespace {

volatile int caught_signal = 0;
volatile int caught_code = 0;
volatile std::uint64_t caught_address = 0;
constexpr std::array caught_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
std::array<struct sigaction, 65> previous_actions;

constexpr int numbers_by_hardware[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                         REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                         REG_R12, REG_R13, REG_R14, REG_R15};

__attribute__((no_stack_protector)) void on_signal(int signal, siginfo_t* info, void* context) {
    auto& machine = differential_machine;
    if (machine.is_running) {
        differential_take_bases();
    } else {
        const auto& previous = previous_actions[static_cast<std::size_t>(signal)];
        if (previous.sa_flags & SA_SIGINFO)
            previous.sa_sigaction(signal, info, context);
        else
            ::signal(signal, SIG_DFL);
        return;
    }
    auto& c = static_cast<ucontext_t*>(context)->uc_mcontext;
    for (unsigned n = 0; n < 16; ++n)
        machine.general[n] = static_cast<std::uint64_t>(c.gregs[numbers_by_hardware[n]]);
    machine.rflags = static_cast<std::uint64_t>(c.gregs[REG_EFL]);
    machine.rip = static_cast<std::uint64_t>(c.gregs[REG_RIP]);
    const auto* frame = reinterpret_cast<const std::byte*>(c.fpregs);
    std::uint32_t magic = 0, size = 512;
    constexpr std::size_t software_area = 464, size_at = 16;
    std::memcpy(&magic, frame + software_area, 4);
    if (magic == 0x46505853) std::memcpy(&size, frame + software_area + size_at, 4);
    std::memcpy(machine.extended, frame, size);
    caught_signal = signal;
    caught_code = info->si_code;
    caught_address = reinterpret_cast<std::uint64_t>(info->si_addr);
    c.gregs[REG_RIP] = reinterpret_cast<greg_t>(&differential_back);
    c.gregs[REG_RSP] = static_cast<greg_t>(machine.host_rsp);
    c.gregs[REG_EFL] = 0x202;
}

void catch_signals() {
    static std::array<std::byte, 1u << 16> stack;
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    ::sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const auto signal : caught_signals)
        ::sigaction(signal, &action, &previous_actions[static_cast<std::size_t>(signal)]);
}

void leave_signals_to_previous() {
    for (const auto signal : caught_signals)
        ::sigaction(signal, &previous_actions[static_cast<std::size_t>(signal)], nullptr);
}

constexpr std::byte int3{0xcc};

// Where the beginning of the image is; code may not come to it.
constexpr std::uint64_t header_begin = 0x2f000000;
constexpr std::size_t header_size = 4096;
// There, where hardly any case looks, is the address that code jumps to at its end, which differs
// from run to run.
constexpr Address way_back_at = NativeCode::begin + NativeCode::size - sizeof(std::uint64_t);

// Of a file with this before the code: code that is no image's is taken for code that may change.
void write_header(std::byte* to) {
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segments[2];
    } image{};
    auto& header = image.header;
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    const auto segment = [](unsigned flags, std::uint64_t offset, std::uint64_t at,
                            std::uint64_t bytes) {
        Elf64_Phdr load{};
        load.p_type = PT_LOAD;
        load.p_flags = flags;
        load.p_offset = offset;
        load.p_vaddr = at;
        load.p_filesz = load.p_memsz = bytes;
        return load;
    };
    image.segments[0] = segment(PF_R, 0, header_begin, header_size);
    image.segments[1] =
        segment(PF_R | PF_X, header_size, NativeCode::begin.value, NativeCode::size);
    std::memcpy(to, &image, sizeof image);
}

}  // namespace

NativeCode::NativeCode() {
    static_assert(offsetof(Machine, is_running) == 208);
    const int file = ::memfd_create("code", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, header_size + size) != 0)
        throw std::runtime_error("memfd_create");
    const auto map = [&](std::uint64_t at, std::size_t bytes, int protection, off_t offset) {
        auto* const place = ::mmap(reinterpret_cast<void*>(at), bytes, protection,
                                   MAP_SHARED | (at ? MAP_FIXED_NOREPLACE : 0), file, offset);
        if (place == MAP_FAILED) throw std::runtime_error("mmap");
        return static_cast<std::byte*>(place);
    };
    auto* const all = map(0, header_size + size, PROT_READ | PROT_WRITE, 0);
    map(header_begin, header_size, PROT_READ, 0);
    map(begin.value, size, PROT_READ | PROT_EXEC, header_size);
    ::close(file);
    write_header(all);
    writable_ = all + header_size;
    clear();
    catch_signals();
}

NativeCode::~NativeCode() {
    leave_signals_to_previous();
    ::munmap(writable_ - header_size, header_size + size);
    ::munmap(reinterpret_cast<void*>(header_begin), header_size);
    ::munmap(reinterpret_cast<void*>(begin.value), size);
}

void NativeCode::clear() {
    std::memset(writable_, std::to_integer<int>(int3), size);
    const auto back = way_out().value;
    std::memcpy(writable_ + (way_back_at - begin), &back, sizeof back);
}

void NativeCode::fill(Address at, std::size_t bytes) {
    std::memset(writable_ + (at - begin), std::to_integer<int>(int3), bytes);
}

void NativeCode::place(Address at, std::span<const std::byte> code) {
    auto* to = writable_ + (at - begin);
    std::memcpy(to, code.data(), code.size());
    to += code.size();
    constexpr std::uint8_t jump_through_memory[] = {0xff, 0x25};
    const auto end = at + code.size() + sizeof jump_through_memory + sizeof(std::int32_t);
    const auto distance = static_cast<std::int32_t>(way_back_at - end);
    std::memcpy(to, jump_through_memory, sizeof jump_through_memory);
    std::memcpy(to + sizeof jump_through_memory, &distance, sizeof distance);
}

Address NativeCode::way_out() {
    return {reinterpret_cast<std::uint64_t>(&differential_save)};
}

void NativeCode::allow_execution(AddressRange pages, bool allow) {
    ::mprotect(reinterpret_cast<void*>(pages.begin.value), pages.size(),
               PROT_READ | (allow ? PROT_EXEC : 0));
}

void NativeCode::look_writable(bool yes) {
    ::mprotect(reinterpret_cast<void*>(begin.value), size,
               PROT_READ | PROT_EXEC | (yes ? PROT_WRITE : 0));
}

NativeEnd NativeCode::run(emu::GuestState& state) {
    auto& machine = differential_machine;
    std::memcpy(machine.general, state.general.data(), sizeof machine.general);
    machine.rflags = state.rflags;
    machine.fs_base = state.fs_base;
    machine.gs_base = state.gs_base;
    machine.rip = state.rip.value;
    machine.components = emu::switched_components();
    machine.extended = state.extended.data();
    caught_signal = 0;
    machine.is_running = 1;
    differential_run();
    machine.is_running = 0;
    std::memcpy(state.general.data(), machine.general, sizeof machine.general);
    state.rflags = machine.rflags;
    state.fs_base = machine.fs_base;
    state.gs_base = machine.gs_base;
    NativeEnd result;
    result.signal = caught_signal;
    state.rip = way_out();
    if (caught_signal == 0) return result;
    state.rip = {machine.rip - (caught_signal == SIGTRAP ? 1 : 0)};
    result.address_known =
        caught_signal == SIGSEGV && (caught_code == SEGV_MAPERR || caught_code == SEGV_ACCERR);
    result.fault_address = {caught_address};
    return result;
}

}  // namespace shadowprof::differential
