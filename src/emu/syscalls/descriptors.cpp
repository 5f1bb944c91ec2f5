#include "emu/syscalls/descriptors.h"

#include <algorithm>

namespace shadowprof::emu {

Descriptor& Descriptors::descriptor_at(int fd) {
    auto& descriptor = descriptors_[fd];
    if (!descriptor.file) {
        const bool was_closed = contain(closed_ranges_, fd);
        descriptor = fd < 0 || was_closed ? closed_descriptor() : queries_.descriptor(fd);
        if (contain(ranges_to_close_on_exec_, fd)) descriptor.closes_on_exec = true;
    }
    return descriptor;
}

bool Descriptors::contain(const Ranges& ranges, int fd) {
    const auto number = static_cast<unsigned>(fd);
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return range.first <= number && number <= range.second;
    });
}

Descriptor Descriptors::closed_descriptor() {
    auto file = std::make_shared<OpenFile>();
    file->kind = OpenFile::Kind::closed;
    return {std::move(file), false};
}

std::optional<int> Descriptors::lowest_free(int from) {
    for (;; ++from) {
        const auto& file = at(from);
        if (file.kind == OpenFile::Kind::closed) return from;
        if (!file.is_certain()) return {};
    }
}

void Descriptors::close(int fd) {
    descriptors_[fd] = closed_descriptor();
}

void Descriptors::close_range(unsigned first, unsigned last) {
    for (auto& [fd, descriptor] : descriptors_) {
        const auto number = static_cast<unsigned>(fd);
        if (first <= number && number <= last) descriptor = closed_descriptor();
    }
    closed_ranges_.emplace_back(first, last);
}

void Descriptors::close_range_on_exec(unsigned first, unsigned last) {
    for (auto& [fd, descriptor] : descriptors_) {
        const auto number = static_cast<unsigned>(fd);
        if (first <= number && number <= last) descriptor.closes_on_exec = true;
    }
    ranges_to_close_on_exec_.emplace_back(first, last);
}

void Descriptors::duplicate(int from, int to, std::optional<bool> closes_on_exec) {
    descriptors_[to] = {shared_at(from), closes_on_exec};
}

void Descriptors::opened(int fd, std::optional<bool> closes_on_exec) {
    auto& descriptor = descriptors_[fd] = queries_.opened_descriptor(fd);
    descriptor.closes_on_exec = closes_on_exec;
    descriptor.file->opened_here = true;
    descriptor.file->is_held = true;
    if (flags_to_open_with_) descriptor.file->status_flags = flags_to_open_with_;
}

}  // namespace shadowprof::emu
