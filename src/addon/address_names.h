// Names addresses of a process by what is mapped there: files, with the variable if their symbols
// have it, heaps and stacks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proc/maps.h"

namespace shadowprof::addon {

class AddressNames {
  public:
    void target_is(pid_t pid);
    // It has loaded this file: a short program may be over when it is asked for names.
    void has_image(const std::string& path);
    std::string name(std::uint64_t address);

  private:
    struct Variable {
        std::uint64_t begin = 0, end = 0;
        std::string name;
    };
    struct Image {
        bool is_read = false;
        std::uint64_t first = 0, end = 0;  // as it is linked
        std::vector<Variable> variables;   // in order
    };
    void read_maps();
    const Image& image_of(const std::string& path);
    std::string look_up(std::uint64_t address);

    pid_t pid_ = 0;
    std::vector<proc::Mapping> mappings_;
    std::map<std::string, std::uint64_t> first_of_;  // mapping of each file
    std::map<std::string, Image> images_;
};

}  // namespace shadowprof::addon
