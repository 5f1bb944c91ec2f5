// Wraps bytes as gzip (RFC 1952), which some readers insist on. Nothing is compressed: deflate has
// blocks for that (RFC 1951, 3.2.4), and profiles are small.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::report {

std::string gzip(std::string_view bytes);

}  // namespace shadowprof::report
