#include "report/exports/gzip.h"

#include <zlib.h>

#include "base/error.h"

namespace shadowprof::report {

std::string gzip(std::string_view bytes) {
    constexpr int gzip_wrapper = 16;  // added to the size of the window: gzip, not zlib
    z_stream stream{};
    const auto ready = deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED,
                                    MAX_WBITS + gzip_wrapper, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
    SHADOWPROF_ASSERT(ready == Z_OK, "zlib is of another version than its header");
    std::string out;
    std::string_view rest = bytes;
    int result = Z_OK;
    // zlib counts its input in 32 bits.
    constexpr std::size_t step = std::size_t{1} << 20;
    while (result != Z_STREAM_END) {
        if (stream.avail_in == 0 && !rest.empty()) {
            const auto part = rest.substr(0, step);
            rest.remove_prefix(part.size());
            // It reads from there, although it is not declared const.
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
            stream.avail_in = static_cast<uInt>(part.size());
        }
        const auto done = out.size();
        out.resize(done + step);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
        stream.avail_out = static_cast<uInt>(step);
        result = deflate(&stream, rest.empty() ? Z_FINISH : Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
    }
    deflateEnd(&stream);
    return out;
}

}  // namespace shadowprof::report
