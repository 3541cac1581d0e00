// Where the libraries of a CANN installation are: found by looking, without loading anything.
//
// Installations differ: the runtime is libacl_rt.so or, before, libascendcl.so; operators are in
// one libopapi.so or in several libopapi_*.so; operators of custom packages are elsewhere again.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace opserve::server {

struct CannLayout {
  std::string library_dir;  // of the runtime
  std::string home;         // the installation; "" if the directory stands for itself
  std::string opp;          // its operator packages; "" if there are none
  std::string runtime;      // paths of libraries
  std::string nnopbase;
  std::vector<std::string> operators;  // in the order of the search: custom packages first
  // Where to look for libraries that these need and the system's loader does not find.
  std::vector<std::string> dependency_dirs;
  // Likely mistakes in the installation, a sentence each.
  std::vector<std::string> oddities;
};

// The value of an environment variable, null if it is not set.
using EnvironmentVariable = absl::FunctionRef<const char*(const char*)>;

// `where`: an installation, its lib64, a directory that has all libraries (as the host CANN's), or
// "cann": the installation in ASCEND_HOME_PATH or ASCEND_TOOLKIT_HOME, else the one in CANN's
// default place. Custom packages are those of ASCEND_CUSTOM_OPP_PATH, then those that
// vendors/config.ini of ASCEND_OPP_PATH (else of the installation) lists, in that order. A
// directory with a libcust_opapi.so of its own has everything; the environment is not asked.
//
// kNotFound: a library is missing; the message names it and the remedy.
absl::StatusOr<CannLayout> FindCann(const std::string& where, EnvironmentVariable environment);

}  // namespace opserve::server
