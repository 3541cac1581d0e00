// Putting messages together.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace opserve::host_cann {

// The parts one after another: strings as they are, whole numbers in decimal.
template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::string text;
  const auto append = [&text](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_arithmetic_v<Part> || std::is_enum_v<Part>) {
      text += std::to_string(+part);
    } else {
      text += std::string_view(part);
    }
  };
  (append(parts), ...);
  return text;
}

}  // namespace opserve::host_cann
