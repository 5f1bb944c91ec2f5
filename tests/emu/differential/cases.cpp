#include "cases.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "decoder/decoder.h"
#include "emu/extended_area.h"
#include "exceptions.h"

namespace shadowprof::differential {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;
using emu::page_size;

namespace {

constexpr std::size_t slot_size = 512, code_in_slot = 160;
constexpr std::size_t states_per_sequence = 8;
constexpr std::size_t most_reports = 40;
constexpr unsigned most_repetitions = 2;
// Of a program: status flags, direction, and the identification flag.
constexpr std::uint64_t random_flags = 0x200cd5;

const Exception* exception_for(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    for (const auto& exception : exceptions)
        if (exception.name == name) return &exception;
    return nullptr;
}

// mov to, and pop of, a segment register: like lfs (see exceptions.h).
bool loads_segment_register(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.kind == OperandKind::reg && operand.writes &&
               operand.reg.kind == RegisterKind::segment;
    });
}

// xsave and its like (see exceptions.h).
bool saves_to_narrow_segment(const Instruction& i) {
    const auto name = decoder::mnemonic_name(i);
    if (!name.starts_with("xsave") && !name.starts_with("xrstor")) return false;
    const auto& m = i.operands()[0].memory;
    return m.address_bits == 32 &&
           (m.segment == decoder::Segment::fs || m.segment == decoder::Segment::gs);
}

// What it saves depends on which registers the CPU knows to be in their initial state (see
// exceptions.h).
bool tells_what_is_in_use(const Instruction& i) {
    return decoder::mnemonic_name(i).starts_with("xsave");
}

bool is_rip_relative(const Instruction& i) {
    const auto operands = i.operands();
    return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
        return operand.memory.base.kind == RegisterKind::instruction_pointer;
    });
}

// The distance is the instruction's last byte, or its last four.
std::optional<Instruction> with_branch_distance(const Instruction& i, std::int64_t distance) {
    for (const std::size_t size : {1u, 4u}) {
        auto bytes = i.bytes;
        if (size >= i.length) continue;
        for (std::size_t n = 0; n < size; ++n)
            bytes[i.length - size + n] =
                static_cast<std::byte>(static_cast<std::uint64_t>(distance) >> 8 * n);
        const auto other = decoder::decode({bytes.data(), i.length}, i.address);
        if (other && other->mnemonic == i.mnemonic &&
            static_cast<std::int64_t>(other->target - other->end()) == distance)
            return other;
    }
    return {};
}

}  // namespace

// ---- Arena ------------------------------------------------------------------------------------

Arena::Arena() {
    auto* pages_at = ::mmap(data(), size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (pages_at == MAP_FAILED) throw std::runtime_error("mmap");
    std::memset(data(), 0x5a, size);
    protect_read_only_page(true);
}

Arena::~Arena() {
    ::munmap(data(), size);
}

void Arena::protect_read_only_page(bool protect) {
    ::mprotect(data() + writable_pages * page_size, page_size,
               protect ? PROT_READ : PROT_READ | PROT_WRITE);
}

void Arena::fetch(Address first, std::span<Page> wanted) {
    for (std::size_t n = 0; n < wanted.size(); ++n) {
        const auto at = first + n * page_size;
        auto& page = wanted[n];
        const bool is_code = NativeCode::begin <= at && at < NativeCode::begin + NativeCode::size;
        if (!is_code && (at < begin || at >= begin + size)) {
            page.into = nullptr;
            continue;
        }
        std::memcpy(page.into, reinterpret_cast<const void*>(at.value), page_size);
        page.readable = true;
        page.writable = !is_code && at < begin + writable_pages * page_size;
    }
}

void Arena::randomise(Random& random) {
    for (std::size_t at = 0; at < writable_pages * page_size; at += 8) {
        auto value = random();
        if ((value & 0x700) == 0)
            value = static_cast<std::uint64_t>(static_cast<std::int8_t>(value));
        std::memcpy(data() + at, &value, 8);
    }
}

void Arena::put(Address at, std::span<const std::byte> bytes) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto to = at + n;
        if (begin <= to && to < begin + writable_pages * page_size) data()[to - begin] = bytes[n];
    }
}

// ---- Blocks -----------------------------------------------------------------------------------

class Differential::Blocks : public emu::BlockSource {
  public:
    void set(trace::Block block) {
        block_ = std::make_unique<trace::Block>(std::move(block));
        kept_.push_back(std::move(block_));
    }
    const trace::Block* block_at(Address at, emu::MemoryView&) override {
        return !kept_.empty() && kept_.back()->start == at ? kept_.back().get() : nullptr;
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        auto part = std::make_unique<trace::Block>(block);
        part->instructions.resize(instructions);
        std::erase_if(part->slots, [&](const auto& s) { return s.instruction >= instructions; });
        parts_.push_back(std::move(part));
        return *parts_.back();
    }
    bool may_change(Address) override { return false; }
    void forget() {
        kept_.clear();
        parts_.clear();
    }

  private:
    std::unique_ptr<trace::Block> block_;
    std::vector<std::unique_ptr<trace::Block>> kept_, parts_;
};

// ---- Sequences --------------------------------------------------------------------------------

Differential::Differential(const FormTable& forms, std::uint64_t seed)
    : forms_(forms),
      random_(seed),
      statistics_(forms.forms().size()),
      blocks_(std::make_unique<Blocks>()),
      view_(arena_),
      interpreter_(*blocks_),
      initial_arena_(Arena::size) {
    std::map<std::string, std::vector<std::size_t>> extensions;
    for (std::size_t n = 0; n < forms.forms().size(); ++n)
        extensions[forms.forms()[n].extension].push_back(n);
    for (auto& [name, members] : extensions) by_extension_.push_back(std::move(members));
}

Differential::~Differential() = default;

// Every form has its share, and so has every extension, large or small. If extensions are given, it
// is one of theirs.
std::size_t Differential::pick_form(const std::vector<std::size_t>& extensions) {
    constexpr std::uint64_t enough_to_know = 8;
    const auto tries = extensions.empty() ? ~std::uint64_t{0} : 100;
    for (std::uint64_t n = 0;; ++n) {
        const bool is_free = extensions.empty() || n > tries;
        std::size_t form = 0;
        if (is_free && random_.chance(0.5)) {
            form = random_.below(forms_.forms().size());
        } else {
            const auto extension = is_free ? random_.below(by_extension_.size())
                                           : extensions[random_.below(extensions.size())];
            const auto& members = by_extension_[extension];
            form = members[random_.below(members.size())];
        }
        const auto& known = statistics_[form];
        const bool never_runs = known.executed == 0 && known.illegal >= enough_to_know;
        if (!never_runs) return form;
    }
}

bool Differential::make_sequence() {
    steps_.clear();
    const std::size_t length = random_.chance(0.5) ? 1 : 2 + random_.below(5);
    // What one instruction of an extension leaves behind is seen by others of it, or by those that
    // save it.
    std::vector<std::size_t> extensions;
    if (length > 1 && random_.chance(0.3))
        for (unsigned n = 0; n < 2; ++n) extensions.push_back(random_.below(by_extension_.size()));
    if (slot_ + 2 * slot_size > NativeCode::begin + NativeCode::size) {
        interpreter_.forget_code();
        blocks_->forget();
        code_.clear();
        slot_ = NativeCode::begin;
    }
    slot_ += slot_size;
    start_ = slot_ + code_in_slot;

    std::vector<std::byte> bytes;
    trace::Block block;
    block.start = start_;
    block.exit = trace::BlockExit::cut;
    while (steps_.size() < length) {
        const auto form = pick_form(extensions);
        const auto at = start_ + bytes.size();
        auto encoding = vary(forms_.forms()[form], random_, at);
        auto instruction = decode(encoding, at);
        if (!instruction) continue;
        const auto* exception = exception_for(*instruction);
        if ((exception && exception->kind == Exception::Kind::not_run) ||
            loads_segment_register(*instruction) || saves_to_narrow_segment(*instruction)) {
            ++statistics_[form].excepted;
            if (steps_.empty()) return false;
            break;
        }
        if (is_rip_relative(*instruction)) {
            const auto target = operand_address(512);
            const auto layout = encoding.assemble();
            auto patched = layout;
            const auto displacement =
                static_cast<std::int32_t>(target.value - instruction->end().value);
            if (layout.displacement == 0) return false;
            std::memcpy(patched.code.data() + layout.displacement, &displacement, 4);
            instruction = decoder::decode({patched.code.data(), instruction->length}, at);
            if (!instruction) return false;
        }
        const bool is_branch = instruction->flow != decoder::Flow::next;
        if (is_branch && instruction->target.value != 0) {
            // Behind the way back, or before the code; int3 is there.
            const std::int64_t distance = random_.chance(0.5)
                                              ? static_cast<std::int64_t>(20 + random_.below(80))
                                              : -static_cast<std::int64_t>(100 + random_.below(20));
            const auto patched = with_branch_distance(*instruction, distance);
            if (!patched) return false;
            instruction = patched;
        }
        bytes.insert(bytes.end(), instruction->bytes.begin(),
                     instruction->bytes.begin() + instruction->length);
        block.instructions.push_back(*instruction);
        steps_.push_back({form, *instruction});
        if (is_branch) {
            block.exit = trace::exit_of(instruction->flow);
            break;
        }
    }
    end_ = start_ + bytes.size();
    block.slots = trace::slots_of(
        block.instructions, trace::CapturePlan(trace::Capture::destination_values) |
                                trace::Capture::memory_addresses | trace::Capture::loaded_values);
    code_.place(start_, bytes);
    blocks_->set(std::move(block));
    return true;
}

// ---- States -----------------------------------------------------------------------------------

namespace {

std::uint64_t any_value(Random& random) {
    constexpr std::uint64_t special[] = {0,
                                         1,
                                         ~std::uint64_t{0},
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0x80000000,
                                         0x7fffffff,
                                         0x8000,
                                         0x7f,
                                         0x80,
                                         0xffffffff,
                                         63,
                                         64,
                                         0x3ff0000000000000,
                                         0x7ff0000000000000,
                                         0x7ff8000000000001,
                                         0x7ff0000000000001,
                                         0x000fffffffffffff,
                                         0x7f8000003f800000,
                                         0x7fc0000100000001,
                                         0x7c003c007e018001};
    switch (random.below(4)) {
        case 0:
            return special[random.below(std::size(special))];
        case 1:
            return random() >> random.below(64);
        case 2:
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(random()) >>
                                              random.below(64));
        default:
            return random();
    }
}

void randomise_extended(emu::GuestState& state, Random& random) {
    emu::ExtendedArea area(state.extended.data());
    constexpr std::size_t x87_control = 0, x87_status = 2, x87_tag = 4, x87_opcode = 6,
                          x87_instruction = 8, x87_operand = 16, mxcsr = 24, registers = 32;
    std::memset(state.extended.data(), 0, state.extended.size());
    area.set<std::uint64_t>(512, emu::switched_components());
    // Usually all exceptions are masked; any rounding.
    const auto masks = [&](unsigned all) {
        return random.chance(0.9) ? all : static_cast<unsigned>(random.below(64));
    };
    area.set<std::uint16_t>(x87_control,
                            static_cast<std::uint16_t>(masks(0x3f) | 0x40 | random.below(4) << 8 |
                                                       random.below(4) << 10));
    auto status = static_cast<std::uint16_t>(random.below(8) << 11 | (random() & 0x4700));
    if (random.chance(0.1)) {
        const auto raised = static_cast<std::uint16_t>(random() & 0x7f);
        const bool is_pending = raised & ~area.get<std::uint16_t>(x87_control) & 0x3f;
        status |= static_cast<std::uint16_t>(raised | (is_pending ? 0x8080 : 0));
    }
    area.set<std::uint16_t>(x87_status, status);
    if (random.chance(0.5)) {
        area.set<std::uint16_t>(x87_opcode, random() & 0x7ff);
        area.set<std::uint64_t>(x87_instruction, random() >> 17);
        area.set<std::uint64_t>(x87_operand, random() >> 17);
    }
    area.set<std::uint8_t>(x87_tag,
                           static_cast<std::uint8_t>(random.chance(0.5) ? 0xff : random() & 0xff));
    area.set<std::uint32_t>(
        mxcsr,
        static_cast<std::uint32_t>(masks(0x3f) << 7 | random.below(4) << 13 | (random() & 0x8040)));
    for (unsigned n = 0; n < 8; ++n) {
        area.set<std::uint64_t>(registers + 16 * n, any_value(random));
        const auto exponent =
            random.chance(0.7) ? 0x3fff - 8 + random.below(16) : random() & 0xffff;
        area.set<std::uint16_t>(registers + 16 * n + 8, static_cast<std::uint16_t>(exponent));
        if (random.chance(0.7)) {
            const auto significand = area.get<std::uint64_t>(registers + 16 * n);
            area.set<std::uint64_t>(registers + 16 * n, significand | std::uint64_t{1} << 63);
        }
    }
    for (unsigned n = 0; n < 32; ++n) {
        emu::ExtendedArea::Vector value;
        for (auto& word : value) word = any_value(random);
        area.set_vector(n, value);
    }
    for (unsigned n = 0; n < 8; ++n) area.set_mask(n, random.chance(0.3) ? ~0ull : random());
    if (random.chance(0.1)) {
        const auto absent = random() & 0xe6 & emu::switched_components();
        area.set<std::uint64_t>(512, emu::switched_components() & ~absent);
    }
}

}  // namespace

// Anywhere an operand of that size may get into trouble.
Address Differential::operand_address(unsigned bits) {
    const auto bytes = std::max(bits / 8, 1u);
    const auto end_of = [](std::size_t page) { return Arena::begin + (page + 1) * page_size; };
    const auto chance = random_.unit();
    Address at{};
    if (chance < 0.55) {
        at = Arena::begin + random_.below(Arena::writable_pages * page_size - bytes);
    } else if (chance < 0.70) {  // across two writable pages
        at = end_of(0) - random_.below(bytes + 1);
    } else if (chance < 0.76) {  // across into the read-only page
        at = end_of(1) - random_.below(bytes + 1);
    } else if (chance < 0.80) {
        at = end_of(1) + random_.below(page_size - bytes);
    } else if (chance < 0.90) {  // ends where memory ends
        at = end_of(2) - bytes;
    } else if (chance < 0.94) {  // or beyond
        at = end_of(2) - random_.below(bytes + 1);
    } else if (chance < 0.97) {  // begins before memory begins
        at = Arena::begin - random_.below(bytes + 1);
    } else {
        at = Arena::begin + Arena::size + random_.below(page_size);
    }
    if (random_.chance(0.5) && bytes >= 16) at.value &= ~std::uint64_t{63};
    return at;
}

// Sets registers so that the operand lies somewhere interesting.
void Differential::place_operand(const Operand& operand) {
    const auto& m = operand.memory;
    auto target = operand_address(std::max<unsigned>(operand.bits, 8));
    if (m.segment == decoder::Segment::fs) target = target - initial_.fs_base;
    if (m.segment == decoder::Segment::gs) target = target - initial_.gs_base;
    target = target - static_cast<std::uint64_t>(m.displacement);
    if (m.use == decoder::MemoryUse::gather) {
        // Most elements near the base, some not.
        emu::ExtendedArea area(initial_.extended.data());
        auto indices = area.vector(m.index.number);
        for (auto& word : indices) {
            const auto low = random_.below(200), high = random_.below(200);
            if (random_.chance(0.9)) word = random_.chance(0.5) ? low | high << 32 : low;
        }
        area.set_vector(m.index.number, indices);
        if (m.base.kind == RegisterKind::general) initial_.general[m.base.number] = target.value;
        return;
    }
    if (m.index && m.index.bits >= 32) {
        const auto index = random_.chance(0.7) ? random_.below(64) : random_();
        if (!m.base || m.base.number == m.index.number) {
            const auto scale = m.scale + (m.base.is_general(m.index.number) ? 1u : 0u);
            initial_.general[m.index.number] = target.value / scale;
            return;
        }
        initial_.general[m.index.number] = index;
        target = target - index * m.scale;
    }
    if (m.base.kind == RegisterKind::general) {
        initial_.general[m.base.number] = target.value;
        if (m.address_bits == 32 && random_.chance(0.5))
            initial_.general[m.base.number] |= random_() << 32;
    }
}

void Differential::make_state() {
    using enum decoder::Mnemonic;
    auto& s = initial_;
    for (auto& reg : s.general) reg = any_value(random_);
    for (auto& reg : s.general)
        if (random_.chance(0.2)) reg = operand_address(64).value;
    s.general[decoder::rsp] = operand_address(64).value & ~std::uint64_t{7};
    s.general[decoder::rbp] = operand_address(64).value & ~std::uint64_t{7};
    s.rip = start_;
    s.rflags = 0x202 | (random_() & random_flags);
    if (random_.chance(0.7)) s.rflags &= ~std::uint64_t{0x400};
    s.fs_base = random_.below(0x1000) * 8;
    s.gs_base = Arena::begin.value + random_.below(Arena::size);
    randomise_extended(s, random_);
    if (random_.chance(0.3)) arena_.randomise(random_);

    // Of several instructions the later ones find what the earlier ones left.
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
        const auto& i = step->instruction;
        for (const auto& operand : i.operands())
            if (operand.kind == OperandKind::memory) place_operand(operand);
        if (i.repeat != decoder::Repeat::none) s.general[decoder::rcx] = random_.below(300);
        if (i.mnemonic == movdir64b || i.mnemonic == enqcmd)
            s.general[i.operands()[0].reg.number] = operand_address(512).value;
        const bool is_bit_string =
            i.mnemonic == bt || i.mnemonic == bts || i.mnemonic == btr || i.mnemonic == btc;
        if (is_bit_string && i.operands()[1].kind == OperandKind::reg && random_.chance(0.8))
            s.general[i.operands()[1].reg.number] =
                random_.below(8192) - (random_.chance(0.3) ? 8192 : 0);
        const bool saves_state = decoder::mnemonic_name(i).starts_with("xsave") ||
                                 decoder::mnemonic_name(i).starts_with("xrstor") ||
                                 decoder::mnemonic_name(i).starts_with("fx");
        if (saves_state && random_.chance(0.9)) {
            const auto& m = i.operands()[0].memory;
            if (m.base.kind == RegisterKind::general && !m.index)
                s.general[m.base.number] = Arena::begin.value + random_.below(40) * 64 -
                                           static_cast<std::uint64_t>(m.displacement);
        }
        if (i.mnemonic == xgetbv) s.general[decoder::rcx] = random_.below(3);
        if (i.mnemonic == lar || i.mnemonic == lsl || i.mnemonic == verr || i.mnemonic == verw)
            s.general[decoder::rax] = random_.below(64);
    }

    // Values that end up in rip or in the flags.
    const auto& last = steps_.back().instruction;
    const auto somewhere = slot_ + 340 + random_.below(100);
    if (last.flow == decoder::Flow::return_) {
        arena_.put({s.general[decoder::rsp]}, std::as_bytes(std::span{&somewhere.value, 1}));
    } else if (last.flow == decoder::Flow::indirect_jump ||
               last.flow == decoder::Flow::indirect_call) {
        const auto& target = last.operands()[0];
        if (target.kind == OperandKind::reg) {
            s.general[target.reg.number] = somewhere.value;
        } else {
            const auto& m = target.memory;
            auto at = static_cast<std::uint64_t>(m.displacement);
            if (m.base.kind == RegisterKind::instruction_pointer)
                at += last.end().value;
            else if (m.base)
                at += s.general[m.base.number];
            if (m.index) at += s.general[m.index.number] * m.scale;
            if (m.address_bits == 32) at &= 0xffffffff;
            if (m.segment == decoder::Segment::fs) at += s.fs_base;
            if (m.segment == decoder::Segment::gs) at += s.gs_base;
            arena_.put({at}, std::as_bytes(std::span{&somewhere.value, 1}));
        }
    }
    for (const auto& step : steps_) {
        if (step.instruction.mnemonic != popf && step.instruction.mnemonic != popfq) continue;
        // Without trap and alignment-check flags, in every place it may be popped from.
        constexpr std::byte harmless{0};
        for (const auto offset : {0, 1, 2, 3})
            for (std::int64_t at = -64; at < 64; at += 2)
                arena_.put({s.general[decoder::rsp] + static_cast<std::uint64_t>(at + offset)},
                           {&harmless, offset == 1 || offset == 2 ? 1u : 0u});
    }
}

// ---- Running and comparing ----------------------------------------------------------------------

void Differential::run(std::uint64_t cases) {
    const auto until = cases_ + cases;
    while (cases_ < until) run_sequence();
}

void Differential::run_sequence() {
    if (!make_sequence()) return;
    for (std::size_t n = 0; n < states_per_sequence; ++n) {
        make_state();
        run_state();
    }
}

namespace {

class Sink : public emu::BlockSink {
  public:
    void executed(std::span<const trace::BlockId>, std::span<const std::uint64_t> values) override {
        count += values.size();
    }
    void discontinuity(Address) override {}
    std::size_t count = 0;
};

}  // namespace

void Differential::run_state() {
    std::memcpy(initial_arena_.data(), arena_.data(), Arena::size);
    const bool recorded = random_.chance(0.5);
    const bool may_differ = std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
        return tells_what_is_in_use(step.instruction);
    });
    ++cases_;
    for (unsigned attempt = 0;; ++attempt) {
        view_.drop();
        for (std::size_t n = 0; n < Arena::pages; ++n) view_.page(Arena::begin + n * page_size);
        interpreted_ = initial_;
        native_ = initial_;
        Sink sink;
        const auto stop =
            interpreter_.run(interpreted_, view_, steps_.size(), recorded ? &sink : nullptr);
        const auto native = code_.run(native_, end_);
        const auto found = differences(stop, native);
        if (found.empty() || !may_differ || attempt == most_repetitions) {
            if (attempt > 0 && found.empty()) ++agreed_later_;
            count(stop, native, found);
            return;
        }
        arena_.put(Arena::begin, initial_arena_);
    }
}

namespace {

constexpr const char* names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                 "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

std::uint64_t comparable_flags(const emu::GuestState& s) {
    constexpr std::uint64_t resume = 0x10000;
    return s.rflags & ~resume;
}

void compare_extended(const emu::GuestState& a, const emu::GuestState& b,
                      std::string& differences) {
    auto bytes_a = a.extended, bytes_b = b.extended;
    const emu::ExtendedArea x(bytes_a.data()), y(bytes_b.data());
    for (unsigned n = 0; n < 32; ++n) {
        const auto v = x.vector(n), w = y.vector(n);
        if (v == w) continue;
        differences += fmt::format("  zmm{}", n);
        for (std::size_t k = 8; k-- > 0;)
            differences += v[k] == w[k] ? fmt::format(" {:016x}", v[k])
                                        : fmt::format(" {:016x}|{:016x}", v[k], w[k]);
        differences += "\n";
    }
    for (unsigned n = 0; n < 8; ++n)
        if (x.mask(n) != y.mask(n))
            differences += fmt::format("  k{} {:x} | {:x}\n", n, x.mask(n), y.mask(n));
    if (x.get<std::uint32_t>(24) != y.get<std::uint32_t>(24))
        differences += fmt::format("  mxcsr {:x} | {:x}\n", x.get<std::uint32_t>(24),
                                   y.get<std::uint32_t>(24));
    const auto x87 = [](const emu::ExtendedArea& area, std::size_t offset, std::size_t size) {
        const bool present = area.present() & 1;
        std::uint64_t value = 0;
        if (present)
            value = area.get<std::uint64_t>(offset);
        else if (offset == 0)
            value = 0x37f;
        return size >= 8 ? value : value & ((std::uint64_t{1} << 8 * size) - 1);
    };
    struct Field {
        const char* name;
        std::size_t offset, size;
    };
    constexpr Field fields[] = {{"control", 0, 2}, {"status", 2, 2},      {"tags", 4, 1},
                                {"opcode", 6, 2},  {"instruction", 8, 8}, {"operand", 16, 8}};
    for (const auto& field : fields) {
        const auto v = x87(x, field.offset, field.size), w = x87(y, field.offset, field.size);
        if (v != w) differences += fmt::format("  x87 {} {:x} | {:x}\n", field.name, v, w);
    }
    for (std::size_t n = 0; n < 8; ++n) {
        const auto at = 32 + 16 * n;
        if (x87(x, at, 8) != x87(y, at, 8) || x87(x, at + 8, 2) != x87(y, at + 8, 2))
            differences +=
                fmt::format("  st{} {:04x}{:016x} | {:04x}{:016x}\n", n, x87(x, at + 8, 2),
                            x87(x, at, 8), x87(y, at + 8, 2), x87(y, at, 8));
    }
}

bool is_canonical(Address a) {
    const auto top = static_cast<std::int64_t>(a.value) >> 47;
    return top == 0 || top == -1;
}

bool same_kind(const emu::Stop& stop, const NativeEnd& native) {
    using enum emu::StopKind;
    switch (native.signal) {
        case 0:
        case SIGTRAP:
            return stop.kind == instructions;
        case SIGFPE:
            // A recorded run looks at memory before the instruction has a chance to refuse.
            return stop.kind == arithmetic || stop.kind == memory_fault;
        case SIGILL:
            return stop.kind != instructions;
        default:
            return stop.kind == memory_fault || stop.kind == general_protection ||
                   stop.kind == trap || stop.kind == unsupported;
    }
}

}  // namespace

std::uint64_t Differential::flag_difference() const {
    return comparable_flags(interpreted_) ^ comparable_flags(native_);
}

std::uint64_t Differential::undefined_flags() const {
    std::uint64_t undefined = 0;
    for (const auto& step : steps_) undefined |= step.instruction.flags_undefined;
    return undefined;
}

std::size_t Differential::step_at(Address at) const {
    for (std::size_t n = 0; n < steps_.size(); ++n)
        if (steps_[n].instruction.address == at) return n;
    return steps_.size() - 1;
}

std::string Differential::differences(const emu::Stop& stop, const NativeEnd& native) {
    std::string differences;
    // The interpreter only ends where there is no code; the CPU tries to execute it.
    const bool fetched_nothing = native.address_known && native.fault_address == native_.rip &&
                                 stop.kind == emu::StopKind::instructions;
    if (!fetched_nothing && !same_kind(stop, native))
        differences += fmt::format("  end: {} at {:x} | signal {}\n", stop.reason,
                                   stop.fault_address.value, native.signal);
    if (interpreted_.rip != native_.rip)
        differences +=
            fmt::format("  rip {:x} | {:x}\n", interpreted_.rip.value, native_.rip.value);
    for (std::size_t n = 0; n < 16; ++n)
        if (interpreted_.general[n] != native_.general[n])
            differences +=
                fmt::format("  {} {:x} | {:x} (was {:x})\n", names[n], interpreted_.general[n],
                            native_.general[n], initial_.general[n]);
    if (interpreted_.fs_base != native_.fs_base || interpreted_.gs_base != native_.gs_base)
        differences += "  segment bases\n";
    compare_extended(interpreted_, native_, differences);
    for (std::size_t n = 0; n < Arena::pages; ++n) {
        const auto at = Arena::begin + n * page_size;
        const auto* mine = view_.page(at).data;
        const auto* theirs = arena_.data() + n * page_size;
        if (std::memcmp(mine, theirs, page_size) == 0) continue;
        const auto where = std::mismatch(mine, mine + page_size, theirs).first - mine;
        differences += fmt::format(
            "  memory at {:x}: {:02x} | {:02x} (was {:02x})\n",
            at.value + static_cast<std::uint64_t>(where), std::to_integer<int>(mine[where]),
            std::to_integer<int>(theirs[where]),
            std::to_integer<int>(initial_arena_[n * page_size + static_cast<std::size_t>(where)]));
    }
    if (flag_difference() & ~undefined_flags())
        differences +=
            fmt::format("  flags {:x} | {:x} (was {:x})\n", comparable_flags(interpreted_),
                        comparable_flags(native_), comparable_flags(initial_));
    // Large areas are written in an order of the CPU's own.
    const bool is_large = std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
        const auto operands = step.instruction.operands();
        return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
            return operand.kind == OperandKind::memory && operand.bits > 512;
        });
    });
    if (!is_large && native.address_known && stop.kind == emu::StopKind::memory_fault &&
        (native.fault_address.value ^ stop.fault_address.value) & emu::page_mask)
        differences += fmt::format("  fault address {:x} | {:x}\n", stop.fault_address.value,
                                   native.fault_address.value);
    return differences;
}

void Differential::count(const emu::Stop& stop, const NativeEnd& native,
                         const std::string& differences) {
    const bool leaves_address_space =
        steps_.back().instruction.flow != decoder::Flow::next && !is_canonical(interpreted_.rip);
    const bool expected = leaves_address_space || stop.kind == emu::StopKind::trap_flag ||
                          std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
                              return exception_for(step.instruction) != nullptr;
                          });
    // What happened belongs to the instruction that faulted, or to the last one.
    const auto culprit = step_at(native_.rip);
    for (std::size_t n = 0; n <= culprit; ++n) {
        auto& form = statistics_[steps_[n].form];
        if (n == culprit && native.signal == SIGILL) {
            ++form.illegal;
            continue;
        }
        ++form.executed;
        if (n == culprit && native.signal != 0 && native.signal != SIGTRAP) ++form.faulted;
        if (expected) ++form.excepted;
    }
    auto& form = statistics_[steps_[culprit].form];
    if (stop.kind == emu::StopKind::unsupported)
        ++statistics_[steps_[step_at(interpreted_.rip)].form].unsupported;
    if (flag_difference() & undefined_flags()) ++form.undefined_flags;
    if (differences.empty() || expected) return;
    ++form.mismatches;
    ++mismatches_;
    if (reports_.size() >= most_reports) return;
    std::string report =
        fmt::format("{} of {}:\n", forms_.forms()[steps_[culprit].form].name, steps_.size());
    for (const auto& step : steps_) {
        report += "   ";
        for (const auto byte : step.instruction.encoding())
            report += fmt::format(" {:02x}", std::to_integer<int>(byte));
        report += "  " + decoder::text(step.instruction) + "\n";
    }
    for (std::size_t n = 0; n < 16; ++n)
        report += fmt::format(" {}={:x}", names[n], initial_.general[n]);
    report += fmt::format("\n fs={:x} gs={:x} rip={:x}\n", initial_.fs_base, initial_.gs_base,
                          start_.value);
    reports_.push_back(report + "  (interpreter | CPU)\n" + differences);
}

}  // namespace shadowprof::differential
