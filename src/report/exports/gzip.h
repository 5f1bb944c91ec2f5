// The gzip format (RFC 1952), which readers of pprof's files insist on.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::report {

std::string gzip(std::string_view bytes);

}  // namespace shadowprof::report
