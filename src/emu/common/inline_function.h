// A std::function that never allocates: for closures over a few plain values, of which compiling a
// block makes dozens.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace shadowprof::emu {

template <std::size_t Size, typename... Arguments>
class InlineFunction {
  public:
    template <typename Closure>
    requires(!std::is_same_v<std::remove_cvref_t<Closure>, InlineFunction>)
        InlineFunction(const Closure& closure)  // NOLINT(google-explicit-constructor)
        : call_([](const std::byte* storage, Arguments... arguments) {
              (*std::launder(reinterpret_cast<const Closure*>(storage)))(arguments...);
          }) {
        static_assert(sizeof(Closure) <= Size && alignof(Closure) <= alignof(std::max_align_t));
        static_assert(std::is_trivially_copyable_v<Closure> &&
                      std::is_trivially_destructible_v<Closure>);
        ::new (storage_) Closure(closure);
    }

    void operator()(Arguments... arguments) const { call_(storage_, arguments...); }

  private:
    void (*call_)(const std::byte*, Arguments...);
    alignas(std::max_align_t) std::byte storage_[Size];
};

}  // namespace shadowprof::emu
