// Something for each instruction that is known by name, looked up at once.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "decoder/mnemonic.h"

namespace shadowprof::decoder {

template <class T>
class ByMnemonic {
  public:
    struct Group {
        T value;
        std::initializer_list<Mnemonic> of;
    };
    constexpr ByMnemonic(T others, std::initializer_list<Group> groups) {
        values_.fill(others);
        for (const auto& group : groups)
            for (const auto mnemonic : group.of)
                values_.at(static_cast<std::size_t>(mnemonic)) = group.value;
    }
    constexpr T operator[](Mnemonic mnemonic) const {
        return values_[static_cast<std::size_t>(mnemonic)];
    }

  private:
    std::array<T, static_cast<std::size_t>(Mnemonic::enqcmds) + 1> values_{};  // the last one
};

}  // namespace shadowprof::decoder
