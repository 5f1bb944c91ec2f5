#include "report/model/json_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "report/model/json_cursor.h"
#include "report/model/utf8.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t largest_file = std::size_t{4} << 30;
// An empty string takes three bytes of the file and ten times that in memory; no command line or
// list of warnings is that long.
constexpr std::size_t most_strings = 1 << 20;

class Reader {
  public:
    explicit Reader(std::string_view json) : in_(json) {}

    Profile read() {
        Profile p;
        in_.object(required("schema", [&] { schema(); }),    //
                   required("version", [&] { version(); }),  //
                   required("tool", [&] { p.tool = in_.text(); }),
                   required("host", [&] { read(p.host); }),
                   optional("hosts", [&] { list(p.hosts); }),
                   required("targets", [&] { list(p.targets); }),
                   required("run", [&] { read(p.run); }),    //
                   required("cost", [&] { read(p.cost); }),  //
                   required("coverage", [&] { read(p.coverage); }),
                   required("modules", [&] { list(p.modules); }),
                   required("locations", [&] { list(p.locations); }),
                   optional("stacks", [&] { hotlist(p.stacks.emplace()); }),
                   optional("paths", [&] { hotlist(p.paths.emplace()); }),
                   optional("edges", [&] { hotlist(p.edges.emplace()); }),
                   optional("calls", [&] { hotlist(p.calls.emplace()); }),
                   optional("methods", [&] { methods(p.methods.emplace()); }),
                   optional("values", [&] { values(p.values.emplace()); }),
                   optional("latencies", [&] { latencies(p.latencies.emplace()); }));
        in_.end();
        if (const auto defect = defect_of(p)) throw JsonError(*defect);
        return p;
    }

  private:
    void schema() {
        if (in_.text() != schema_name) in_.fail(fmt::format("\"schema\" is not {}", schema_name));
    }
    void version() {
        const auto version = in_.number();
        if (version != schema_version)
            in_.fail(fmt::format("version {} of the format; this shadowprof reads version {}",
                                 version, schema_version));
    }

    template <class Item>
    void list(std::vector<Item>& items) {
        in_.array([&] {
            if (std::is_same_v<Item, std::string> && items.size() == most_strings)
                in_.fail("too many strings in an array");
            read(items.emplace_back());
        });
        items.shrink_to_fit();
    }
    void read(std::string& text) { text = in_.text(); }
    void read(std::uint32_t& n) { n = in_.small_number(); }

    void read(Host& h) {
        in_.object(required("cpu", [&] { h.cpu = in_.text(); }),
                   required("cores", [&] { h.cores = in_.small_number(); }),
                   required("kernel", [&] { h.kernel = in_.text(); }));
    }

    void read(Target& t) {
        in_.object(required("command", [&] { list(t.command); }),
                   required("pid", [&] { t.pid = in_.signed_number(); }),
                   required("exit",
                            [&] {
                                if (!in_.null_if_there())
                                    t.exit = static_cast<std::int32_t>(in_.number(0x7fffffff));
                            }),
                   required("attached", [&] { t.attached = in_.boolean(); }));
    }

    void read(Run& r) {
        in_.object(required("mode", [&] { r.mode = in_.text(); }),
                   required("profiles", [&] { list(r.profiles); }),
                   required("options", [&] { each_once(r.options, [&] { return in_.text(); }); }),
                   required("seed", [&] { r.seed = in_.hex64(); }),
                   optional("seeds", [&] { in_.array([&] { r.seeds.push_back(in_.hex64()); }); }),
                   required("started", [&] { r.started = in_.text(); }),
                   required("duration", [&] { r.duration = in_.real(); }),
                   optional("interrupted",
                            [&] {
                                if (!in_.null_if_there()) r.interrupted = in_.text();
                            }),
                   optional("warnings", [&] { list(r.warnings); }),
                   optional("failures", [&] { list(r.failures); }));
    }
    template <class Value, class Read>
    void each_once(std::map<std::string, Value>& into, Read read_value) {
        in_.each_key([&](const std::string& key) {
            if (!into.emplace(key, read_value()).second)
                in_.fail(fmt::format("\"{}\" twice in one object", shorten_end(key, 60)));
        });
    }

    void read(Cost& c) {
        in_.object(required("stops", [&] { c.stops = in_.number(); }),
                   required("stop_time", [&] { c.stop_time = in_.real(); }),
                   required("forks", [&] { c.forks = in_.number(); }),
                   required("extra_faults", [&] { c.extra_faults = in_.number(); }),
                   optional("extra_cpu", [&] { c.extra_cpu = in_.real(); }),
                   optional("slowdown", [&] { c.slowdown = in_.real(); }));
    }

    void read(Coverage& c) {
        in_.object(
            required("samples", [&] { c.samples = in_.number(); }),
            required("instructions", [&] { c.instructions = in_.number(); }),
            required("blocks", [&] { c.blocks = in_.number(); }),
            optional("weighted_instructions", [&] { c.weighted_instructions = in_.number(); }),
            required("ended", [&] { each_once(c.ended, [&] { return in_.number(); }); }));
    }

    void read(Module& m) {
        in_.object(required("path", [&] { m.path = in_.text(); }),
                   required("build_id", [&] { m.build_id = in_.text(); }));
    }

    void read(Location& l) {
        in_.object(required("module", [&] { l.module = in_.small_number(); }),
                   required("offset", [&] { l.offset = in_.hex64(); }),
                   optional("content", [&] { l.content = in_.hex64(); }),
                   optional("return_address", [&] { l.return_address = in_.boolean(); }),
                   optional("function", [&] { l.function = in_.text(); }),
                   optional("function_offset", [&] { l.function_offset = in_.hex64(); }),
                   optional("file", [&] { l.file = in_.text(); }),
                   optional("line", [&] { l.line = in_.small_number(); }),
                   optional("inlined", [&] { list(l.inlined); }),
                   optional("text", [&] { l.text = in_.text(); }));
    }

    void read(InlinedFrame& f) {
        in_.object(required("function", [&] { f.function = in_.text(); }),
                   required("file", [&] { f.file = in_.text(); }),
                   required("line", [&] { f.line = in_.small_number(); }));
    }

    auto total(Totals& t) {
        return required("total", [&] { t.total = in_.number(); });
    }
    auto unknown(Totals& t) {
        return required("unknown", [&] { t.unknown = in_.number(); });
    }
    auto exhaustive(Totals& t) {
        return required("exhaustive", [&] { t.exhaustive = in_.boolean(); });
    }
    auto samples(Totals& t) {
        return required("samples", [&] { t.samples = in_.number(); });
    }
    auto squares(Totals& t) {
        return required("total_squares", [&] { t.total_squares = in_.hex128(); });
    }

    template <class List>
    auto dropped(List& list_) {
        return optional("dropped", [&] { list_.dropped = in_.number(~std::uint64_t{0} >> 1); });
    }

    template <class List>
    void hotlist(List& list_) {
        auto& t = list_.totals;
        in_.object(total(t), unknown(t), exhaustive(t), samples(t), squares(t), dropped(list_),
                   required("entries", [&] { list(list_.entries); }));
    }
    void methods(MethodHotlist& m) {
        auto& t = m.totals;
        auto& i = m.instructions;
        in_.object(
            total(t), unknown(t), exhaustive(t), samples(t), squares(t), dropped(m),
            required(
                "instructions",
                [&] { in_.object(total(i), unknown(i), exhaustive(i), samples(i), squares(i)); }),
            required("entries", [&] { list(m.entries); }));
    }

    void values(ValueHotlist& v) {
        Totals all;
        std::optional<std::uint64_t> read;
        in_.object(total(all), unknown(all), exhaustive(all), samples(all), squares(all),
                   dropped(v), optional("read", [&] { read = in_.number(); }),
                   required("entries", [&] { list(v.entries); }));
        v.totals = all;
        v.totals.total = v.totals.unknown = read.value_or(all.total);
        if (v.totals.total > all.total) in_.fail("more values were read than there were");
        v.unread = all.total - v.totals.total;
        profile::Wide sum = all.unknown;
        for (const auto& e : v.entries) {
            sum += e.all_executions();
            if (e.executions.total > v.totals.unknown)
                in_.fail("more values were read in the entries than in all");
            v.totals.unknown -= e.executions.total;
        }
        if (sum != all.total) in_.fail("values: entries and unknown do not add up to the total");
    }

    void latencies(LatencyHotlist& l) {
        auto& t = l.totals;
        in_.object(total(t), unknown(t), exhaustive(t), samples(t), squares(t), dropped(l),
                   required("loads", [&] { l.loads = in_.number(); }),
                   required("clock", [&] { clock(l.scale); }),
                   required("caches", [&] { read(l.scale.caches); }),
                   required("entries", [&] { list(l.entries); }));
    }
    // The clock's ticks are not told: one is a resolution.
    void clock(LatencyScale& s) {
        in_.object(
            required("usable", [&] { s.clock_is_usable = in_.boolean(); }),
            optional("why_not", [&] { s.why_not = in_.text(); }),
            optional("resolution_ns", [&] { s.nanoseconds_per_tick = in_.real(); }),
            optional("overhead_ns", [&] { s.overhead_ticks = in_.real(); }),
            optional("longest_ns", [&] { s.longest_ns = in_.real(); }),
            optional("typical_ns", [&] { by_level(s.typical_ns, [&] { return in_.real(); }); }),
            optional("limits_ns", [&] { few(s.limits_ns, [&](double& ns) { ns = in_.real(); }); }));
        if (s.nanoseconds_per_tick > 0) s.overhead_ticks /= s.nanoseconds_per_tick;
    }
    void read(machine::CacheGeometry& c) {
        in_.object(
            required("line", [&] { c.line = in_.number(); }),
            required("sizes", [&] { few(c.levels, [&](auto& l) { l.size = in_.number(); }); }),
            required("ways", [&] { few(c.levels, [&](auto& l) { l.ways = in_.small_number(); }); }),
            required("page", [&] { c.page = in_.number(); }),
            required("pages_in_tlb", [&] { c.pages_in_tlb = in_.small_number(); }));
    }
    template <class Items, class Read>
    void few(Items& items, Read read_one) {
        std::size_t n = 0;
        in_.array([&] {
            if (n == items.size()) in_.fail("too many items in an array");
            read_one(items[n++]);
        });
    }
    template <class Number, class Read>
    void by_level(std::array<Number, memory_levels>& numbers, Read read_one) {
        in_.object(required(level_names[0], [&] { numbers[0] = read_one(); }),
                   required(level_names[1], [&] { numbers[1] = read_one(); }),
                   required(level_names[2], [&] { numbers[2] = read_one(); }),
                   required(level_names[3], [&] { numbers[3] = read_one(); }));
    }

    auto count(Statistics& s) {
        return required("count", [&] { s.count = in_.number(); });
    }
    auto stats(Statistics& s) {
        return required("stats", [&] {
            in_.object(required("samples", [&] { s.samples = in_.number(); }),
                       required("squares", [&] { s.squares = in_.hex128(); }),
                       required("products", [&] { s.products = in_.hex128(); }));
        });
    }

    void read(StackEntry& e) {
        in_.object(required("frames", [&] { list(e.frames); }), count(e.statistics),
                   stats(e.statistics));
    }

    void read(PathEntry& e) {
        std::vector<std::uint32_t> starts, ends, lengths;
        in_.object(required("blocks", [&] { list(starts); }), required("ends", [&] { list(ends); }),
                   required("lengths", [&] { list(lengths); }), count(e.statistics),
                   stats(e.statistics));
        if (ends.size() != starts.size() || lengths.size() != starts.size())
            in_.fail("a path whose blocks, ends and lengths are not of one size");
        e.blocks.reserve(starts.size());
        for (std::size_t i = 0; i < starts.size(); ++i)
            e.blocks.push_back({starts[i], ends[i], lengths[i]});
    }

    void read(EdgeEntry& e) {
        in_.object(required("from", [&] { e.from = in_.small_number(); }),
                   required("to", [&] { e.to = in_.small_number(); }),
                   required("kind", [&] { e.kind = named(edge_kind(in_.text())); }),
                   count(e.statistics), stats(e.statistics));
    }
    template <class Kind>
    Kind named(std::optional<Kind> kind) {
        if (!kind) in_.fail("an unknown kind");
        return *kind;
    }

    void read(CallEntry& e) {
        in_.object(required("from", [&] { e.from = in_.small_number(); }),
                   required("to", [&] { e.to = in_.small_number(); }), count(e.statistics),
                   stats(e.statistics));
    }

    void read(MethodEntry& e) {
        in_.object(required("function", [&] { e.function = in_.small_number(); }),
                   required("calls", [&] { e.calls = in_.number(); }),
                   required("tail_calls", [&] { e.tail_calls = in_.number(); }),
                   required("back_edges", [&] { e.back_edges = in_.number(); }),
                   count(e.statistics), stats(e.statistics), required("instructions", [&] {
                       in_.object(count(e.instructions), stats(e.instructions));
                   }));
    }

    void read(ValueEntry& e) {
        auto& t = e.executions;
        std::optional<std::uint64_t> part;  // of them were read
        counts_.clear();
        in_.object(required("location", [&] { e.location = in_.small_number(); }),
                   required("operand", [&] { e.operand = in_.text(); }),
                   required("operand_index", [&] { e.operand_index = in_.small_number(); }),
                   required("kind", [&] { e.kind = named(value_kind(in_.text())); }),
                   required("bits", [&] { e.bits = in_.small_number(); }),
                   optional("context", [&] { e.context = in_.small_number(); }),
                   required("executions", [&] { t.total = in_.number(); }), unknown(t),
                   required("stats",
                            [&] {
                                in_.object(optional("read", [&] { part = in_.number(); }),
                                           exhaustive(t), samples(t), squares(t),
                                           required("p_inverse",
                                                    [&] { e.probability_inverse = in_.number(); }));
                            }),
                   required("top", [&] { list(e.top); }),
                   optional("stride", [&] { read(e.stride.emplace()); }));
        if (e.bits > 64) in_.fail("a value of more than 64 bits");
        if (part) tell_read_from_all(e, *part);
    }
    // So far `executions` are all, of which `read` were read; counts_ stand for all as well.
    void tell_read_from_all(ValueEntry& e, std::uint64_t read) {
        auto& t = e.executions;
        if (read > t.total) in_.fail("more values were read than there were executions");
        e.unread = t.total - read;
        t.total = read;
        profile::Wide told = t.unknown, known = 0;
        for (std::size_t i = 0; i < e.top.size(); ++i) {
            known += e.top[i].statistics.count;
            told += counts_[i];
            if (known > read || counts_[i] != e.estimated(e.top[i].statistics.count))
                in_.fail("a value's count is not what was read of it stands for");
        }
        if (told != e.all_executions())
            in_.fail("values.top: entries and unknown do not add up to the total");
        t.unknown = read - static_cast<std::uint64_t>(known);
    }
    void read(ValueShare& v) {
        auto& s = v.statistics;
        std::optional<std::uint64_t> read;
        in_.object(required("value", [&] { v.value = in_.hex64(); }), count(s),
                   required("stats", [&] {
                       in_.object(optional("read", [&] { read = in_.number(); }),
                                  required("samples", [&] { s.samples = in_.number(); }),
                                  required("squares", [&] { s.squares = in_.hex128(); }),
                                  required("products", [&] { s.products = in_.hex128(); }));
                   }));
        counts_.push_back(s.count);
        if (read) s.count = *read;
    }
    void read(LatencyEntry& e) {
        const auto number = [&] { return in_.number(); };
        in_.object(required("location", [&] { e.location = in_.small_number(); }),
                   required("operand", [&] { e.operand = in_.text(); }),
                   required("operand_index", [&] { e.operand_index = in_.small_number(); }),
                   required("loads", [&] { e.loads = in_.number(); }),
                   required("timed", [&] { e.timed = in_.number(); }),
                   required("disturbed", [&] { e.disturbed = in_.number(); }), count(e.statistics),
                   stats(e.statistics),
                   required("sum_ps", [&] { e.picoseconds = in_.signed_number(); }),
                   required("sum_square_ns", [&] { e.square_nanoseconds = in_.number(); }),
                   required("histogram", [&] { in_.array([&] { bin(e.histogram); }); }),
                   required("timed_levels", [&] { by_level(e.by_time, number); }),
                   required("modelled", [&] { e.modelled = in_.number(); }),
                   required("levels", [&] { by_level(e.by_model, number); }),
                   required("page_walks", [&] { e.page_walks = in_.number(); }),
                   required("pattern", [&] { e.pattern = named(address_pattern(in_.text())); }),
                   optional("step", [&] { e.step = in_.signed_number(); }),
                   optional("origin", [&] { e.origin = in_.small_number(); }));
    }
    void bin(std::array<std::uint64_t, latency_bins>& histogram) {
        std::uint64_t index = 0, n = 0;
        in_.object(required("bin", [&] { index = in_.number(); }),
                   required("count", [&] { n = in_.number(); }));
        if (index >= histogram.size() || histogram[index] != 0)
            in_.fail("a histogram with a bin twice, or one that is none");
        histogram[index] = n;
    }
    void read(Stride& s) {
        in_.object(required("step", [&] { s.step = in_.signed_number(); }),
                   required("share", [&] { s.share = in_.real(); }),
                   optional("count", [&] { s.count = in_.number(); }),
                   optional("steps", [&] { s.steps = in_.number(); }));
        if (s.count > s.steps) in_.fail("a stride with more of its step than steps");
    }

    JsonCursor in_;
    std::vector<std::uint64_t> counts_;  // of the values of the entry being read
};

struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

std::string contents_of(const std::string& path) {
    const auto fail = [&](const char* why) {
        throw UserError(fmt::format("cannot read {}: {}", path, why));
    };
    const Descriptor fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
    struct stat status {};
    if (fd.number < 0 || ::fstat(fd.number, &status) != 0) fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        fail(S_ISDIR(status.st_mode) ? std::strerror(EISDIR) : "neither a file nor a pipe");

    std::string text;
    std::size_t used = 0;
    const auto expected = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    for (;;) {
        if (used > largest_file) fail("larger than 4 GiB");
        if (used == text.size())
            text.resize(used == 0 ? std::min(expected, largest_file) + 4096 : used + used / 2);
        const ssize_t n = ::read(fd.number, text.data() + used, text.size() - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(std::strerror(errno));
        if (n == 0) break;
        used += static_cast<std::size_t>(n);
    }
    text.resize(used);
    return text;
}

}  // namespace

Profile from_json(std::string_view json) {
    return Reader(json).read();
}

Profile read_profile(const std::string& path) {
    const std::string text = contents_of(path);
    try {
        return from_json(text);
    } catch (const JsonError& e) {
        throw UserError(fmt::format("{}: not a shadowprof profile: {}", path, printable(e.what())));
    }
}

}  // namespace shadowprof::report
