#include "profile/latency/latency_section.h"

#include <tuple>

namespace shadowprof::profile {

namespace {

using model::optional;
using model::required;

auto clock_of(const LatencyScale& s) {
    return std::tuple(s.clock_is_usable, s.resolution_ticks * s.nanoseconds_per_tick,
                      s.overhead_ticks * s.nanoseconds_per_tick, s.longest_ns, s.typical_ns,
                      s.limits_ns, s.why_not);
}

auto sizes_of(const machine::CacheGeometry& c) {
    const auto& l = c.levels;
    return std::tuple(l[2].size, l[1].size, l[0].size, l[2].ways, l[1].ways, l[0].ways, c.line,
                      c.page, c.pages_in_tlb);
}

// An array of at most as many items as there is room for.
template <class Items, class Read>
void read_few(model::JsonCursor& in, Items& items, Read read_one) {
    std::size_t n = 0;
    in.array([&] {
        if (n == items.size()) in.fail("too many items in an array");
        read_one(items[n++]);
    });
}

}  // namespace

void HistogramCodec::write(model::JsonOutput& out, const LatencyHistogram& histogram) {
    out.open_array();
    for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
        if (histogram[bin] == 0) continue;
        out.open_object();
        out.key("bin").number(bin);
        out.key("from_ns").rounded(latency_bin_begin(bin));
        out.key("count").number(histogram[bin]);
        out.close_object();
    }
    out.close_array();
}

void HistogramCodec::read(model::JsonCursor& in, LatencyHistogram& histogram) {
    in.array([&] {
        std::uint64_t index = 0, n = 0;
        in.object(required("bin", [&] { index = in.number(); }),
                  required("count", [&] { n = in.number(); }));
        if (index >= histogram.size() || histogram[index] != 0)
            in.fail("a histogram with a bin twice, or one that is none");
        histogram[index] = n;
    });
}

std::string HistogramCodec::schema() {
    model::ObjectSchema bin;
    bin.add("bin", model::schema_ref("index"), true);
    bin.add("from_ns", model::Json<double>::schema(), false);
    bin.add("count", model::schema_ref("count"), true);
    return R"({"type": "array", "items": )" + bin.take() + "}";
}

void write_scale(model::JsonOutput& out, const LatencyScale& scale) {
    out.key("clock").open_object();
    out.key("usable").boolean(scale.clock_is_usable);
    if (scale.clock_is_usable) {
        // Rounded, as products are, so that they are the same when read and written again.
        out.key("resolution_ns").rounded(scale.resolution_ticks * scale.nanoseconds_per_tick);
        out.key("overhead_ns").rounded(scale.overhead_ticks * scale.nanoseconds_per_tick);
        out.key("longest_ns").real(scale.longest_ns);
        ByLevel<double>::write(out.key("typical_ns"), scale.typical_ns);
        out.key("limits_ns").open_array();
        for (const auto ns : scale.limits_ns) out.real(ns);
        out.close_array();
    } else {
        out.key("why_not").text(scale.why_not);
    }
    out.close_object();
    out.key("caches").open_object();
    out.key("line").number(scale.caches.line);
    out.key("sizes").open_array();
    for (const auto& level : scale.caches.levels) out.number(level.size);
    out.close_array();
    out.key("ways").open_array();
    for (const auto& level : scale.caches.levels) out.number(level.ways);
    out.close_array();
    out.key("page").number(scale.caches.page);
    out.key("pages_in_tlb").number(scale.caches.pages_in_tlb);
    out.close_object();
}

double read_nanoseconds(model::JsonCursor& in) {
    constexpr double longest = 1e12;
    const auto ns = in.real();
    if (ns < 0 || ns > longest) in.fail("a time of a load that cannot be");
    return ns;
}

// The file does not have the clock's ticks: one tick is one step of its resolution.
void read_clock(model::JsonCursor& in, LatencyScale& s) {
    in.object(required("usable", [&] { s.clock_is_usable = in.boolean(); }),
              optional("why_not", [&] { s.why_not = in.text(); }),
              optional("resolution_ns", [&] { s.nanoseconds_per_tick = read_nanoseconds(in); }),
              optional("overhead_ns", [&] { s.overhead_ticks = read_nanoseconds(in); }),
              optional("longest_ns", [&] { s.longest_ns = read_nanoseconds(in); }),
              optional("typical_ns", [&] { ByLevel<double>::read(in, s.typical_ns); }),
              optional("limits_ns", [&] {
                  read_few(in, s.limits_ns, [&](double& ns) { ns = read_nanoseconds(in); });
              }));
    if (s.nanoseconds_per_tick > 0) s.overhead_ticks /= s.nanoseconds_per_tick;
}

void read_caches(model::JsonCursor& in, machine::CacheGeometry& c) {
    in.object(
        required("line", [&] { c.line = in.number(); }),
        required("sizes", [&] { read_few(in, c.levels, [&](auto& l) { l.size = in.number(); }); }),
        required("ways",
                 [&] { read_few(in, c.levels, [&](auto& l) { l.ways = in.small_number(); }); }),
        required("page", [&] { c.page = in.number(); }),
        required("pages_in_tlb", [&] { c.pages_in_tlb = in.small_number(); }));
}

void describe_scale(model::ObjectSchema& schema) {
    const auto number = model::Json<double>::schema();
    const auto few = [](const std::string& items) {
        return R"({"type": "array", "items": )" + items + R"(, "maxItems": 3})";
    };
    model::ObjectSchema clock;
    clock.add("usable", model::Json<bool>::schema(), true);
    clock.add("why_not", model::Json<std::string>::schema(), false);
    clock.add("resolution_ns", number, false);
    clock.add("overhead_ns", number, false, "of timing a load that takes no time");
    clock.add("longest_ns", number, false, "what took longer was disturbed");
    clock.add("typical_ns", ByLevel<double>::schema(), false);
    clock.add("limits_ns", few(number), false, "up to which a load is said to hit each level");
    schema.add("clock", clock.take(), true);
    model::ObjectSchema caches;
    caches.add("line", model::schema_ref("count"), true);
    caches.add("sizes", few(model::schema_ref("count")), true);
    caches.add("ways", few(model::schema_ref("index")), true);
    caches.add("page", model::schema_ref("count"), true);
    caches.add("pages_in_tlb", model::schema_ref("index"), true);
    schema.add("caches", caches.take(), true);
}

void merge_scale(LatencyScale& into, const LatencyScale& other) {
    const auto caches = sizes_of(into.caches) < sizes_of(other.caches) ? other.caches : into.caches;
    if (clock_of(into) < clock_of(other)) into = other;
    into.caches = caches;
}

}  // namespace shadowprof::profile
