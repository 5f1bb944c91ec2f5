#include "emu/syscalls/guest_queries.h"

namespace shadowprof::emu {

Descriptor GuestQueries::descriptor(int) {
    return {std::make_shared<OpenFile>(), {}};
}
Descriptor GuestQueries::opened_descriptor(int fd) {
    return descriptor(fd);
}
bool GuestQueries::has_other_names(int) {
    return true;
}
std::optional<PathStatus> GuestQueries::status_of(int, const std::string&, bool) {
    return {};
}
std::optional<int> GuestQueries::access_to(int, const std::string&, int) {
    return {};
}
bool GuestQueries::is_made_up(std::uint64_t) {
    return true;
}
std::shared_ptr<FileContents> GuestQueries::contents_of(int, const std::string&) {
    return nullptr;
}
std::optional<std::uint64_t> GuestQueries::process_cpu_time() {
    return {};
}
std::optional<std::uint64_t> GuestQueries::thread_cpu_time() {
    return {};
}
std::optional<struct rusage> GuestQueries::usage(int) {
    return {};
}
std::optional<AddressRange> GuestQueries::scratch() const {
    return {};
}
bool GuestQueries::is_mapped(const FileId&, Mapped) {
    return false;
}

}  // namespace shadowprof::emu
