// Numbers and lists in environment variables and fault descriptions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace opserve::host_cann {

// Decimal digits only, from `low` to `high`. False, and `number` unchanged, for anything else.
bool ParseWholeNumber(std::string_view text, uint64_t low, uint64_t high, uint64_t* number);

// "512", "64K", "2M", "4G" in units of 1024. False for anything else, 0 or more than 2^62.
bool ParseByteCount(std::string_view text, uint64_t* bytes);

// The parts between separators, which may be empty; one more than there are separators.
std::vector<std::string_view> Split(std::string_view text, char separator);

}  // namespace opserve::host_cann
