// What threads publish of their requests, and where.
#include "proc/thread_context.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "base/page.h"
#include "proc/thread_variable.h"

using namespace shadowprof;
using namespace shadowprof::proc;

namespace {

using Bytes = std::vector<std::byte>;

Bytes record_with(const std::string& attributes, int valid = 1,
                  std::optional<std::size_t> size = {}) {
    Bytes record(28 + attributes.size());
    for (int n = 0; n < 24; ++n) record[static_cast<std::size_t>(n)] = std::byte(n + 1);
    record[24] = std::byte(valid);
    const auto told = static_cast<std::uint16_t>(size.value_or(attributes.size()));
    std::memcpy(&record[26], &told, sizeof told);
    std::memcpy(record.data() + 28, attributes.data(), attributes.size());
    return record;
}

Bytes bytes_of(const std::string& text) {
    Bytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
}

// A protocol buffers field with a length.
std::string field(char number, const std::string& text) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text;
}

Address address_of(const void* place) {
    return {reinterpret_cast<std::uint64_t>(place)};
}

// Two pages, of which only the first is there.
struct LastPage {
    std::byte* begin = static_cast<std::byte*>(
        mmap(nullptr, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    LastPage() { munmap(begin + page_size, page_size); }
    ~LastPage() { munmap(begin, page_size); }
};

}  // namespace

TEST_CASE("a thread's context: ids, and attributes of which the last of a key counts") {
    const auto context =
        parse_thread_context(record_with(std::string("\1\3GET\0\2/a\1\4POST", 15)));
    REQUIRE(context);
    CHECK(context->trace.front() == std::byte{1});
    CHECK(context->trace.back() == std::byte{16});
    CHECK(context->span.front() == std::byte{17});
    CHECK(context->attributes == std::vector<ThreadContext::Attribute>{{0, "/a"}, {1, "POST"}});
}

TEST_CASE("a thread's context: what is not all there") {
    CHECK(parse_thread_context(record_with(std::string("\0\2/a\1\4PO", 8)))->attributes ==
          std::vector<ThreadContext::Attribute>{{0, "/a"}});
    CHECK(parse_thread_context(record_with(std::string("\0", 1)))->attributes.empty());
    for (const int valid : {0, 2, 255}) CHECK(!parse_thread_context(record_with("", valid)));
    CHECK(!parse_thread_context(record_with("", 1, 1)));
    CHECK(!parse_thread_context(record_with(std::string(60'000, 'a'))));
    auto record = record_with("");
    record.pop_back();
    CHECK(!parse_thread_context(record));
    CHECK(!parse_thread_context({}));
}

TEST_CASE("a thread's context: any bytes yield nothing, or what is in them") {
    std::mt19937_64 random{4947};
    int parsed = 0;
    for (int n = 0; n < 100'000; ++n) {
        Bytes bytes(random() % 200);
        for (auto& byte : bytes) byte = std::byte(random() % (n % 2 ? 256 : 4));
        if (const auto context = parse_thread_context(bytes)) {
            ++parsed;
            std::size_t sum = 0;
            for (const auto& attribute : context->attributes) sum += 2 + attribute.value.size();
            CHECK(28 + sum <= bytes.size());
        }
        if (const auto names = attribute_names_in(bytes)) CHECK(names->size() <= bytes.size());
    }
    CHECK(parsed > 1000);
}

TEST_CASE("a thread's context is read to the last byte of its page, and no further") {
    const LastPage page;
    const Memory memory{getpid()};
    const auto record = record_with(std::string("\0\2/a", 4));
    auto* const place = page.begin + page_size - record.size();
    std::memcpy(place, record.data(), record.size());
    for (const bool is_stopped : {true, false}) {
        const std::byte* variable = place;
        CHECK(read_thread_context(memory, address_of(&variable), is_stopped) == record);
        // Its attributes would be on the page that is not there, then its beginning, then all.
        auto* const longer = place + 1;
        std::memmove(longer, record.data(), record.size() - 1);
        variable = longer;
        CHECK(!read_thread_context(memory, address_of(&variable), is_stopped));
        variable = page.begin + page_size - 27;
        CHECK(!read_thread_context(memory, address_of(&variable), is_stopped));
        variable = reinterpret_cast<const std::byte*>(0x123456789abcdef0);
        CHECK(!read_thread_context(memory, address_of(&variable), is_stopped));
        variable = nullptr;
        CHECK(read_thread_context(memory, address_of(&variable), is_stopped) == Bytes{});
        CHECK(!read_thread_context(memory, Address{16}, is_stopped));
        std::memcpy(place, record.data(), record.size());
    }
}

TEST_CASE("a thread's context: random memory behind a random pointer") {
    const LastPage page;
    const Memory memory{getpid()};
    std::mt19937_64 random{4719};
    int known = 0;
    for (int n = 0; n < 20'000; ++n) {
        for (std::size_t at = page_size - 256; at < page_size; ++at)
            page.begin[at] = std::byte(random() % 3);
        const std::byte* const pointer = page.begin + page_size - random() % 256;
        const auto record = read_thread_context(memory, address_of(&pointer), false);
        if (record && !record->empty()) known += parse_thread_context(*record).has_value();
    }
    CHECK(known > 0);
}

TEST_CASE("names of attributes, in a resource and in what may be around it") {
    const auto names = field(1, field(1, "http.route")) + field(1, field(1, "user"));
    const auto attribute = field(1, "threadlocal.attribute_key_map") + field(2, field(5, names));
    const auto other = field(1, "service.name") + field(2, field(1, "shop"));
    const std::vector<std::string> expected{"http.route", "user"};
    CHECK(attribute_names_in(bytes_of(field(1, other) + field(1, attribute))) == expected);
    CHECK(attribute_names_in(bytes_of(field(1, field(1, other)) + field(2, attribute))) ==
          expected);
    CHECK(!attribute_names_in(bytes_of(field(1, other))));
    auto cut = field(1, attribute);
    cut.resize(cut.size() / 2);
    CHECK(!attribute_names_in(bytes_of(cut)));
}

TEST_CASE("a library's thread-local variable is found where each thread has it") {
    const Memory memory{getpid()};
    const auto maps = Maps::of(getpid());
    REQUIRE(maps);
    const auto module_of = [&](const std::string& name) {
        for (const auto& module : maps->modules())
            if (module.path.find(name) != std::string::npos) return &module;
        return static_cast<const MappedModule*>(nullptr);
    };
    const auto* const libc = module_of("/libc.so");
    if (!libc) return;  // linked statically, or another C library
    const auto error = ThreadVariable::find(memory, *libc, false, "errno");
    REQUIRE(error);
    CHECK(!ThreadVariable::find(memory, *libc, false, "no_such_variable"));
    CHECK(!ThreadVariable::find(memory, *libc, false, "printf"));
    const auto check_here = [&] {
        const auto fs = address_of(__builtin_thread_pointer());
        CHECK(is_thread_pointer(memory, fs));
        CHECK(!is_thread_pointer(memory, fs + 64));
        CHECK(error->of_thread(memory, fs) == address_of(&errno));
        int on_stack = 0;
        const auto now = Maps::of(getpid());
        REQUIRE(now);
        const auto found = find_thread_pointer(memory, *now, gettid(), gettid() == getpid(),
                                               address_of(&on_stack));
        CHECK(found.value_or(Address{}).value == fs.value);
    };
    check_here();
    std::thread(check_here).join();
}
