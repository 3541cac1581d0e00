// Which sources the program was made of.
#pragma once

namespace opserve::server {

// "3ef942a0b1c2", with "-dirty" if there were changes since that commit when the build was
// configured; "unknown" if the sources were not those of a git repository.
extern const char* const kBuildCommit;

}  // namespace opserve::server
