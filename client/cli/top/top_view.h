// The view of `opserve top`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/top/bar_table.h"
#include "opserve/v1/admin_service.pb.h"

namespace opserve::cli {

// Sort keys of tenants: names upwards, all else downwards.
enum class TopOrder { kShare, kName, kPending, kMemory };

inline constexpr char kQuitKey = 'q';

// The order named "share", "name", "pending" or "memory"; nothing for any other.
std::optional<TopOrder> TopOrderNamed(absl::string_view name);

// The order for a pressed key: the first letter of the order's name.
std::optional<TopOrder> TopOrderOfKey(char key);

struct TopOptions {
  TopOrder order = TopOrder::kShare;
  bool has_colors = false;
  std::string socket = {};  // where the daemon answered; empty: it is not said
};

// Columns and lines to fill.
struct ScreenSize {
  size_t width = kUnlimited;
  size_t height = kUnlimited;
};

// The daemon, its devices, its tenants and the operators that were called, with rates from
// `earlier` to `status`; earlier == nullptr: means since the daemon's start. Each line ends with a
// line break and none is wider than the screen. A limited height is for people at a terminal: it
// names the keys, and if devices or tenants lack room, a last line counts them.
std::string RenderTop(const v1::AdminStatus* earlier, const v1::AdminStatus& status,
                      ScreenSize size, const TopOptions& options);

}  // namespace opserve::cli
