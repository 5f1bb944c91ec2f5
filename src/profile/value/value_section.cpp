#include "profile/value/value_section.h"

#include <map>

namespace shadowprof::profile {

namespace {

using model::optional;
using model::required;

std::uint64_t stands_for(std::uint64_t of_those_read, const CountedValues& values) {
    return estimated(of_those_read, values.executions.total, values.unread);
}

Wide all_executions(const CountedValues& values) {
    return Wide{values.executions.total} + values.unread;
}

void write_stride(model::JsonOutput& out, const Stride& stride) {
    out.key("stride").open_object();
    out.key("step").signed_number(stride.step);
    out.key("share").real(stride.share);
    if (stride.steps) {
        out.key("count").number(stride.count);
        out.key("steps").number(stride.steps);
    }
    out.close_object();
}

// An entry without a stride had steps as well, about one an execution. Two different strides make
// none, and that stays so.
void merge_strides(CountedValues& into, const CountedValues& other) {
    const auto known = [](const CountedValues& e) {
        if (!e.stride) return Stride{0, 0, 0, e.executions.total};
        if (e.stride->steps != 0) return *e.stride;
        const auto count = std::clamp(static_cast<long double>(e.stride->share), 0.0L, 1.0L) *
                           static_cast<long double>(e.executions.total);
        return Stride{e.stride->step, e.stride->share, static_cast<std::uint64_t>(count),
                      e.executions.total};
    };
    if (!into.stride && !other.stride) return;
    Stride a = known(into);
    const Stride b = known(other);
    const bool differ = into.stride && other.stride && a.step != b.step;
    if (!into.stride) a.step = b.step;
    model::add_up(a.count, b.count);
    model::add_up(a.steps, b.steps);
    if (differ || a.step == 0) a.step = 0, a.count = 0;
    a.share = a.steps == 0 ? 0 : static_cast<double>(a.count) / static_cast<double>(a.steps);
    into.stride = a;
}

}  // namespace

std::uint64_t estimated(std::uint64_t of_those_read, std::uint64_t read, std::uint64_t unread) {
    if (unread == 0 || read == 0) return of_those_read;
    return static_cast<std::uint64_t>(Wide{of_those_read} * (read + unread) / read);
}

void ValuesField::write_values(model::JsonOutput& out, const CountedValues& e) {
    auto unknown = e.executions.total + e.unread;
    for (const auto& v : e.top) unknown -= stands_for(v.statistics.count, e);
    out.key("executions").number(e.executions.total + e.unread);
    out.key("unknown").number(unknown);
    out.key("stats").open_object();
    if (e.unread) out.key("read").number(e.executions.total);
    out.key("exhaustive").boolean(e.executions.exhaustive);
    out.key("samples").number(e.executions.samples);
    out.key("total_squares").hex(e.executions.total_squares);
    out.key("p_inverse").number(e.probability_inverse);
    out.close_object();
    out.key("invariance")
        .rounded(e.top.empty()
                     ? 0
                     : model::estimate_share(e.top.front().statistics, e.executions).share);
    out.key("top").open_array();
    for (const auto& [value, s] : e.top) {
        const auto count = stands_for(s.count, e);
        out.open_object();
        out.key("value").hex(value);
        out.key("count").number(count);
        model::write_share(out,
                           model::estimate_value_share(s, e.executions, e.probability_inverse));
        out.key("stats").open_object();
        if (count != s.count) out.key("read").number(s.count);
        out.key("samples").number(s.samples);
        out.key("squares").hex(s.squares);
        out.key("products").hex(s.products);
        out.close_object();
        out.close_object();
    }
    out.close_array();
    if (e.stride) write_stride(out, *e.stride);
}

void ValuesField::describe(model::ObjectSchema& schema) const {
    const auto count = model::schema_ref("count");
    schema.add("executions", count, true);
    schema.add("unknown", count, true, "executions whose value is not in `top`");
    model::ObjectSchema statistics;
    statistics.add("read", count, false, "executions whose value was read, if not all");
    statistics.add("exhaustive", model::Json<bool>::schema(), true);
    statistics.add("samples", count, true);
    statistics.add("total_squares", model::schema_ref("hex128"), true);
    statistics.add("p_inverse", count, true, "1/p of the counting sample");
    schema.add("stats", statistics.take(), true);
    schema.add("invariance", model::schema_ref("share"), true, "of the most frequent value");
    model::ObjectSchema value;
    value.extend("counted");
    value.add("value", model::schema_ref("hex64"), true);
    schema.add("top", R"({"type": "array", "items": )" + value.take() + "}", true,
               "most frequent first");
    schema.add("stride", model::schema_of_object<Stride>(), false);
}

void ValuesField::read_statistics(model::JsonCursor& in, CountedValues& e, Kept& kept) {
    auto& t = e.executions;
    in.object(optional("read", [&] { kept.read = in.number(); }),
              required("exhaustive", [&] { t.exhaustive = in.boolean(); }),
              required("samples", [&] { t.samples = in.number(); }),
              required("total_squares", [&] { t.total_squares = in.hex128(); }),
              required("p_inverse", [&] { e.probability_inverse = in.number(); }));
}

void ValuesField::read_value(model::JsonCursor& in, ValueShare& v, Kept& kept) {
    auto& s = v.statistics;
    std::optional<std::uint64_t> read;
    in.object(required("value", [&] { v.value = in.hex64(); }),
              required("count", [&] { s.count = in.number(); }), required("stats", [&] {
                  in.object(optional("read", [&] { read = in.number(); }),
                            required("samples", [&] { s.samples = in.number(); }),
                            required("squares", [&] { s.squares = in.hex128(); }),
                            required("products", [&] { s.products = in.hex128(); }));
              }));
    kept.counts.push_back(s.count);
    if (read) s.count = *read;
}

void ValuesField::read_stride(model::JsonCursor& in, Stride& stride) {
    model::read_object(in, stride);
    if (stride.count > stride.steps) in.fail("a stride with more of its step than steps");
    if (stride.share < 0 || stride.share > 1) in.fail("a share of strides beyond 0 and 1");
}

void ValuesField::tell_read_from_all(model::JsonCursor& in, CountedValues& e, const Kept& kept) {
    auto& t = e.executions;
    const auto read = *kept.read;
    if (read > t.total) in.fail("more values were read than there were executions");
    e.unread = t.total - read;
    t.total = read;
    Wide told = t.unknown, known = 0;
    for (std::size_t i = 0; i < e.top.size(); ++i) {
        known += e.top[i].statistics.count;
        told += kept.counts[i];
        if (known > read || kept.counts[i] != stands_for(e.top[i].statistics.count, e))
            in.fail("a value's count is not what was read of it stands for");
    }
    if (told != all_executions(e))
        in.fail("values.top: entries and unknown do not add up to the total");
    t.unknown = read - static_cast<std::uint64_t>(known);
}

// Each run's estimate of a value may have missed up to inverse - 1 occurrences, so all together as
// many as these add up to.
void ValuesField::merge_values(CountedValues& into, const CountedValues& other) {
    merge_strides(into, other);
    model::add_up(into.executions, other.executions);
    model::add_up(into.unread, other.unread);
    model::add_up(into.probability_inverse,
                  std::max<std::uint64_t>(other.probability_inverse, 1) - 1);
    std::map<std::uint64_t, model::Statistics> values;
    for (const auto& v : into.top) model::add_up(values[v.value], v.statistics);
    for (const auto& v : other.top) model::add_up(values[v.value], v.statistics);
    into.top.clear();
    for (const auto& [value, statistics] : values) into.top.push_back({value, statistics});
}

void ValuesField::sort_values(std::vector<ValueShare>& top) {
    std::sort(top.begin(), top.end(), [](const auto& a, const auto& b) {
        if (a.statistics.count != b.statistics.count)
            return a.statistics.count > b.statistics.count;
        return a.value < b.value;
    });
}

std::optional<std::string> ValuesField::defect_of(const CountedValues& e) {
    Wide shares = 0;
    for (const auto& v : e.top) shares += v.statistics.count;
    if (const auto why = model::imbalance(".top", shares, e.executions)) return why;
    if (e.executions.exhaustive && e.unread != 0)
        return ": an exhaustive entry of which not all executions were read";
    return {};
}

// Counts of values are estimates, each unbiased on its own; together they may exceed what was
// executed. The rarest, which are the least sure, then give way.
void ValuesField::keep_most_frequent(CountedValues& e, std::size_t most) {
    auto left = e.executions.total;
    std::size_t kept = 0;
    for (; kept < std::min(e.top.size(), most) && left != 0; ++kept) {
        auto& statistics = e.top[kept].statistics;
        statistics = statistics.scaled_to(std::min(statistics.count, left));
        left -= statistics.count;
    }
    e.top.resize(kept);
    e.executions.unknown = left;
}

}  // namespace shadowprof::profile
