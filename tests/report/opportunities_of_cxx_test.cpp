// Profiles written by hand of what C++ programs do at some cost: copies, lookups, output.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "report/opportunities/opportunities.h"
#include "vocabulary.h"

namespace shadowprof::report {

namespace {

constexpr const char* header = "/usr/include/c++/12/bits/stl.h";
constexpr const char* users = "/home/user/program.cpp";

class Written {
  public:
    Written() {
        p.modules = {{"/no/such/program", "00"}, {"/usr/lib/libc.so.6", "01"}};
        p.coverage.instructions = all;
        p.coverage.weighted_instructions = all;
        edges_.totals = everything(all);
        time_.totals.samples = 0;
    }
    LocationIndex at(std::uint64_t offset, std::uint64_t function, std::string name,
                     std::string text, std::uint32_t line, std::vector<InlinedFrame> inlined = {},
                     ModuleIndex module = 0) {
        Location l;
        l.module = module;
        l.offset = offset;
        l.function_offset = function;
        l.function = std::move(name);
        l.text = std::move(text);
        l.file = inlined.empty() ? users : header;
        l.line = line;
        l.inlined = std::move(inlined);
        p.locations.push_back(l);
        return static_cast<LocationIndex>(p.locations.size() - 1);
    }
    LocationIndex returning_to(LocationIndex call) {
        auto l = p.at(call);
        l.return_address = true;
        l.text.clear();
        p.locations.push_back(l);
        return static_cast<LocationIndex>(p.locations.size() - 1);
    }
    void edge(LocationIndex from, LocationIndex to, EdgeKind kind, std::uint64_t times) {
        edges_.entries.push_back({from, to, kind, exactly(times, all)});
    }
    void looks(std::vector<LocationIndex> frames, int times, std::string call = {}) {
        auto& e = time_.entries.emplace_back();
        e.state = call.empty() ? profile::ThreadState::user : profile::ThreadState::kernel;
        e.call = std::move(call);
        e.frames = std::move(frames);
        for (int n = 0; n < times; ++n) {
            e.statistics.add_sample(5000, 5000);
            time_.totals.add_sample(5000);
        }
    }
    const Finding* find(std::string_view kind) {
        std::ranges::stable_sort(edges_.entries, std::ranges::greater{},
                                 [](const auto& e) { return e.statistics.count; });
        Symbols symbols;
        found_ = find_opportunities(p, symbols, Code::of_the_user);
        const auto f =
            std::ranges::find(found_, kind, [](const auto& each) { return each.kind->name; });
        return f == found_.end() ? nullptr : &*f;
    }

    static constexpr std::uint64_t all = 1'000'000;
    Profile p;

  private:
    EdgeSection& edges_ = p.add<EdgeSection>();
    TimeSection& time_ = p.add<TimeSection>();
    std::vector<Finding> found_;
};

// main calls f(std::vector<int>) in line 20, and copies for it what the arguments say.
struct Copying : Written {
    explicit Copying(const char* constructor, std::uint32_t destroyed_in = 20,
                     const char* callee = "f(std::vector<int>)") {
        const std::string type = "std::vector<int>";
        const auto make =
            at(0x1000, 0x1000, "main", "call 0x1100", 137, {{constructor, users, 20}});
        const auto call = at(0x1010, 0x1000, "main", "call 0x1300", 20);
        const auto free = at(0x1020, 0x1000, "main", "call 0x1200", 158,
                             {{type + "::~vector()", users, destroyed_in}});
        const auto allocate =
            at(0x1100, 0x1100, "operator new(unsigned long)", "push rbx", 0, {}, 1);
        const auto release = at(0x1200, 0x1200, "operator delete(void*)", "push rbx", 0, {}, 1);
        const auto f = at(0x1300, 0x1300, callee, "mov eax, [rdi]", 5);
        edge(make, allocate, EdgeKind::call, 1000);
        edge(call, f, EdgeKind::call, 1000);
        edge(free, release, EdgeKind::call, 1000);
        looks({f, returning_to(call)}, 50);
        looks({allocate, returning_to(make)}, 30);
        looks({release, returning_to(free)}, 20);
    }
};

constexpr const char* copies = "std::vector<int>::vector(std::vector<int> const&)";

// known() goes down a tree; `more` may use its order.
struct LookingUp : Written {
    explicit LookingUp(const char* method = "find(int const&)") {
        const std::string tree = "std::_Rb_tree<int, int>";
        const auto begin =
            at(0x1000, 0x1000, "known(int)", "mov rdx, [rax+0x10]", 784,
               {{tree + "::_M_lower_bound()", header, 700}, {tree + "::" + method, users, 30}});
        const auto end =
            at(0x1008, 0x1000, "known(int)", "jne 0x1000", 784,
               {{tree + "::_M_lower_bound()", header, 700}, {tree + "::" + method, users, 30}});
        edge(end, begin, EdgeKind::taken, 100'000);
        auto& paths = p.add<PathSection>();
        paths.totals = everything(100'000);
        paths.entries.push_back({{{begin, end, 3}}, exactly(100'000, 100'000)});
        looks({begin}, 80);
        looks({at(0x2000, 0x2000, "main", "ret", 40)}, 20);
    }
    void moves_an_iterator(const char* iterator, const char* within) {
        const auto call =
            at(0x2010, 0x2000, "main", "call 0x3000", 300,
               {{std::string(iterator) + "::operator++()", header, 50}, {within, users, 41}});
        edge(call,
             at(0x3000, 0x3000, "std::_Rb_tree_increment(std::_Rb_tree_node_base*)", "ret", 0, {},
                1),
             EdgeKind::call, 1000);
    }
};

}  // namespace

TEST_CASE("a copy for a parameter by value is a finding, with what it costs") {
    Copying program(copies);
    const auto* f = program.find("temporary-copy");
    REQUIRE(f);
    CHECK(f->where == "main program.cpp:20");
    CHECK(contains(f->what, "copies a std::vector<int> for each call of f"));
    CHECK(f->touches == doctest::Approx(0.5));
    REQUIRE(f->bounds);
    CHECK(f->bounds->low < 0.5);
}

TEST_CASE("what is moved, kept, or changed elsewhere is no temporary copy") {
    CHECK_FALSE(Copying("std::vector<int>::vector(std::vector<int>&&)").find("temporary-copy"));
    CHECK_FALSE(Copying("std::vector<int>::vector(unsigned long)").find("temporary-copy"));
    // Destroyed in another line, and nobody takes it by value.
    CHECK_FALSE(Copying(copies, 22, "f(std::vector<int> const&)").find("temporary-copy"));
    CHECK(Copying(copies, 22).find("temporary-copy"));
}

TEST_CASE("lookups in a tree are a finding unless its order is used") {
    LookingUp program;
    const auto* f = program.find("ordered-lookup");
    REQUIRE(f);
    CHECK(f->where == "known program.cpp:30");
    CHECK(f->touches == doctest::Approx(0.8));
    SUBCASE("somebody walks it") {
        program.moves_an_iterator("std::_Rb_tree_const_iterator<int>", "walk()");
        CHECK_FALSE(program.find("ordered-lookup"));
    }
    SUBCASE("somebody walks another") {
        program.moves_an_iterator("std::_Rb_tree_const_iterator<long>", "walk()");
        CHECK(program.find("ordered-lookup"));
    }
    SUBCASE("inserting moves iterators as well") {
        program.moves_an_iterator("std::_Rb_tree_iterator<int>",
                                  "std::_Rb_tree<int, int>::_M_get_insert_unique_pos(int const&)");
        CHECK(program.find("ordered-lookup"));
    }
}

TEST_CASE("lines that are flushed one by one are a finding") {
    for (const auto writes : {100u, 1'000u}) {
        Written program;
        const auto call = program.at(0x1000, 0x1000, "main", "call 0x1100", 711,
                                     {{"std::ostream& std::endl<char>(std::ostream&)", users, 12}});
        const auto flush =
            program.at(0x1100, 0x1100, "std::ostream::flush()", "call 0x1200", 0, {}, 1);
        const auto write = program.at(0x1200, 0x1200, "write", "syscall", 0, {}, 1);
        program.edge(call, flush, EdgeKind::call, writes);
        program.edge(flush, write, EdgeKind::call, writes);
        program.looks({write, program.returning_to(flush), program.returning_to(call)}, 60,
                      "write");
        program.looks({call}, 60);
        const auto* f = program.find("small-writes");
        // 60 looks of 5 µs: 3 µs for each of 100 writes.
        REQUIRE(f);
        CHECK(f->where == "main program.cpp:12");
        CHECK(f->touches == doctest::Approx(0.5));
    }
    Written program;
    const auto call = program.at(0x1000, 0x1000, "main", "call 0x1200", 12);
    const auto write = program.at(0x1200, 0x1200, "write", "syscall", 0, {}, 1);
    program.edge(call, write, EdgeKind::call, 1000);
    program.looks({write, program.returning_to(call)}, 60, "write");
    program.looks({call}, 60);
    // How much it writes is not known, and nobody flushes.
    CHECK_FALSE(program.find("small-writes"));
}

}  // namespace shadowprof::report
