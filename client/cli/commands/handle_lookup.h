// Finds the resident tensors that people name by the first digits of their handles.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/arrays/handle_text.h"  // what they are written as
#include "client/cli/commands/session.h"

namespace opserve::cli {

// The handles that these texts name, in their order. A text is a whole handle, or the first digits
// of one: then the daemon is asked which of the caller's tensors it is. A text that is none of
// these, but could be a whole handle, is taken for one, about which the daemon will say more.
//
// A usage failure: a text that is no handle, names several tensors, or can only be the first digits
// of a handle that there is not.
std::variant<std::vector<std::string>, Failure> FindHandles(const std::vector<std::string>& texts,
                                                            Client& client, const Session& session);

// Completes the handles in the NAME=tensor:HANDLE among `inputs`; other inputs stay as they are.
std::optional<Failure> CompleteHandles(std::vector<std::string>* inputs, Client& client,
                                       const Session& session);

// How many digits of these handles tell them apart, 8 at the least.
size_t DistinctDigits(const std::vector<TensorInfo>& sorted);

}  // namespace opserve::cli
