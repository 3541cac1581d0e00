// Certificates, keys and revocation lists in PEM. Whatever a list says, only what the authority has
// signed counts; a chain that cannot be read counts as revoked.
//
// Input: a byte that chooses the reader, the text.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/net/pem.h"
#include "server/net/revocations.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::server {
namespace {

using fuzz::Check;

std::string ReadData(const std::string& name) {
  std::ifstream file(absl::StrCat(OPSERVE_FUZZ_DATA_DIR, "/", name));
  std::stringstream text;
  text << file.rdbuf();
  Check(!text.str().empty(), absl::StrCat("there is ", name));
  return text.str();
}

// An authority, one certificate it has revoked, and one it has not.
struct Authority {
  std::string certificate = ReadData("ca.pem");
  std::string revoked = ReadData("revoked.pem");
  std::string valid = ReadData("valid.pem");
  std::string list = ReadData("crl.pem");
};

const Authority& TheAuthority() {
  static const auto* const authority = new Authority;
  return *authority;
}

void ReadList(const std::string& text) {
  const auto list = Revocations::Parse(text, TheAuthority().certificate);
  if (!list.ok()) {
    Check(!list.status().message().empty(), "a refusal says why");
    return;
  }
  // A list that is signed is the one list there is.
  static const auto* const signed_list =
      new Revocations::List(*Revocations::Parse(TheAuthority().list, TheAuthority().certificate));
  Check(list->empty() == text.empty(), "no list is accepted that revokes nothing");
  Check(text.empty() || *list == *signed_list, "only what is signed counts");
}

void ReadChain(const std::string& text) {
  static Revocations* const revocations = [] {
    auto* made = new Revocations;
    made->Set(*Revocations::Parse(TheAuthority().list, TheAuthority().certificate));
    return made;
  }();
  const bool is_readable = !ReadCertificates(text).empty();
  const bool is_revoked = revocations->Contains(text);
  Check(is_readable || is_revoked, "a chain that cannot be read is revoked");
  Check(revocations->Contains(absl::StrCat(TheAuthority().revoked, text)),
        "nothing behind a revoked certificate makes it valid");
  Check(!revocations->Contains(TheAuthority().valid), "the valid one stays valid");
}

// Of an authority's certificates; a list must be signed by one of them.
void ReadAuthorities(const std::string& text) {
  for (const Certificate& certificate : ReadCertificates(text)) {
    Check(certificate != nullptr, "what is read is there");
  }
  Revocations::Parse(TheAuthority().list, text).status().IgnoreError();
}

void ReadKey(const std::string& text) {
  if (ReadPrivateKey(text) == nullptr) Check(!TakeOpensslError().empty(), "a refusal says why");
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opserve::fuzz::Input input(data, size);
  const uint8_t reader = input.Byte();
  const std::string text(input.Rest());
  switch (reader % 4) {
    case 0:
      opserve::server::ReadList(text);
      break;
    case 1:
      opserve::server::ReadChain(text);
      break;
    case 2:
      opserve::server::ReadAuthorities(text);
      break;
    default:
      opserve::server::ReadKey(text);
  }
  return 0;
}
