// Output that is written in small pieces: each costs a system call, and what the library does
// before and after it. Lines that are flushed one by one are the usual case.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "report/opportunities/finders.h"
#include "report/opportunities/values_where.h"
#include "report/symbols/cxx_names.h"
#include "report/text/format.h"
#include "report/views/stack_time.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

bool is_write(std::string_view function) {
    constexpr std::array<std::string_view, 6> writes{
        "write", "__write", "__libc_write", "__GI___libc_write", "writev", "__writev"};
    return std::ranges::find(writes, without_stub(function)) != writes.end();
}

bool is_flush(std::string_view function) {
    constexpr std::array<std::string_view, 3> flushes{"fflush", "_IO_fflush", "fflush_unlocked"};
    const auto name = name_with_class(without_stub(function));
    return std::ranges::find(flushes, name) != flushes.end() || name == "std::ostream::flush" ||
           name.ends_with("basic_ostream::flush") || name.find("std::endl<") != name.npos ||
           name.find("std::flush<") != name.npos;
}

// Of the C library or of C++: what a program writes by itself may have to go out at once, to
// whoever waits for it.
bool is_of_streams(std::string_view function) {
    return function.starts_with("_IO_") || function.starts_with("std::");
}

struct Output {
    Statistics all;      // time below the user's call
    Statistics writing;  // of that in write(2)
    bool is_flushed = false, is_of_stream = false;
};

class WriteFinder {
  public:
    explicit WriteFinder(const Evidence& e) : e_(e), time_(e.profile()) {}

    std::vector<Finding> find() {
        std::vector<Finding> found;
        if (!time_.is_known()) return found;
        count_writes();
        if (writes_ < tuning::least_executions) return found;
        find_output();
        const auto each = real(writing_.count) / real(writes_);
        if (each > tuning::longest_small_write ||
            (sizes_ && sizes_->ratio.share < tuning::least_value_share))
            return found;
        for (const auto& [place, output] : outputs_)
            if (output.writing.count > 0 && (output.is_flushed || (output.is_of_stream && sizes_)))
                found.push_back(finding_of(place, output, each));
        return found;
    }

  private:
    const Profile& p() const { return e_.profile(); }
    bool is_library(const Location& l) const {
        return is_system_library(p().modules[l.module].path);
    }

    // How many there were, and how much they write.
    void count_writes() {
        for (Point at = 0; at < e_.points(); ++at) {
            if (!e_.is_function_entry(at) || !is_write(e_.place(at).function) ||
                e_.place(at).function.ends_with("@plt"))
                continue;
            writes_ += e_.executions(at);
            const auto sizes =
                values_where(e_, argument_writers(e_, at, RegisterFamily::rdx), RegisterFamily::rdx,
                             [](std::uint64_t bytes) { return bytes <= tuning::small_write; });
            const auto any = values_where(e_, argument_writers(e_, at, RegisterFamily::rdx),
                                          RegisterFamily::rdx, [](std::uint64_t) { return true; });
            // Otherwise nothing is known of most.
            if (any.ratio.share >= tuning::least_value_share) sizes_ = sizes;
        }
    }

    void find_output() {
        time_.each([&](const TimeSection::Entry& e) {
            const bool writes = is_write(p().at(e.frames.front()).function);
            if (writes) writing_.merge(e.statistics);
            bool is_flushed = false, is_of_stream = false;
            for (std::size_t i = 0; i < e.frames.size(); ++i) {
                const auto& l = p().at(e.frames[i]);
                is_flushed |= std::ranges::any_of(
                    frames_of(l), [](const auto& f) { return is_flush(f.function); });
                is_of_stream |= is_of_streams(l.function);
                if (i == 0 || is_library(l)) continue;
                // The first frame of the program's own.
                if (!is_flushed && !writes) return;
                auto& output = outputs_[place_of(e.frames[i])];
                output.all.merge(e.statistics);
                if (writes) output.writing.merge(e.statistics);
                output.is_flushed |= is_flushed;
                output.is_of_stream |= is_of_stream;
                return;
            }
        });
    }

    // One for each line: several calls there have several return addresses.
    LocationIndex place_of(LocationIndex frame) {
        return places_.try_emplace(users_label(p(), p().at(frame)), frame).first->second;
    }

    Finding finding_of(LocationIndex place, const Output& output, double each) const {
        Finding f;
        f.location = place;
        f.where = users_label(p(), p().at(place));
        const auto here = real(writes_) * real(output.writing.count) / real(writing_.count);
        f.what =
            fmt::format("{} {} here, {} each", counted("write", static_cast<std::uint64_t>(here)),
                        output.is_flushed ? "by flushing" : "by streams", nanoseconds_text(each));
        if (sizes_)
            f.evidence.push_back(fmt::format("no more than {} bytes in {} of them",
                                             tuning::small_write, ratio_text(sizes_->ratio)));
        f.evidence.push_back(
            fmt::format("{} of the time in write", ratio_text(time_.share_of_sum(output.writing))));
        f.bounds = time_.share_of_sum(output.all);
        f.touches = f.bounds->share;
        f.is_by_clock = true;
        return f;
    }

    const Evidence& e_;
    StackTime time_;
    std::uint64_t writes_ = 0;
    std::optional<ValuesWhere> sizes_;
    Statistics writing_;  // all time in write(2)
    std::map<LocationIndex, Output> outputs_;
    std::map<std::string, LocationIndex> places_;
};

}  // namespace

std::vector<Finding> find_small_writes(const Evidence& e, Symbols&) {
    return WriteFinder(e).find();
}

}  // namespace shadowprof::report
