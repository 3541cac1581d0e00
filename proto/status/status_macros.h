// Early returns for absl::Status, which the packaged abseil lacks.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` from the enclosing function if it is not OK.
#define OPSERVE_RETURN_IF_ERROR(expression)                                 \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

// OPSERVE_ASSIGN_OR_RETURN(auto value, Function()): the value, or an early return of the status.
#define OPSERVE_ASSIGN_OR_RETURN(declaration, expression) \
  OPSERVE_ASSIGN_OR_RETURN_(OPSERVE_CONCAT_(result_, __LINE__), declaration, expression)
#define OPSERVE_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) return std::move(result).status();             \
  declaration = *std::move(result)
#define OPSERVE_CONCAT_(a, b) OPSERVE_CONCAT_INNER_(a, b)
#define OPSERVE_CONCAT_INNER_(a, b) a##b
