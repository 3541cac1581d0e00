#include "server/config/listen_address.h"

#include <arpa/inet.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opserve::server {

bool ListenAddress::is_local() const {
  if (is_unix || host == "localhost" || host == "::1") return true;
  // Numbers only: a name that begins so, as 127.example.com, may be any machine's. Other hosts
  // count as reachable from other machines.
  in_addr address = {};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

std::string ListenAddress::ToString() const {
  if (is_unix) return absl::StrCat("unix:", path);
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return absl::StrCat(is_ipv6 ? "[" : "", host, is_ipv6 ? "]:" : ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const auto error = [text](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("address \"", text, "\": ", problem));
  };
  ListenAddress address;
  if (absl::string_view path = text; absl::ConsumePrefix(&path, "unix:")) {
    // The path must fit the system's address, and no other place would say so clearly.
    address.is_unix = true;
    address.path = std::string(path);
    if (path.empty()) return error("the path after unix: is missing");
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return error(absl::StrCat("a socket's path has at most ", sizeof(sockaddr_un::sun_path) - 1,
                                " bytes"));
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return error("expected unix:PATH or HOST:PORT");
  absl::string_view host = text.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) {
    return error("] is missing");
  }
  // An empty host means all interfaces to the system, which must not happen by accident.
  if (host.empty()) return error("the host is missing; for all interfaces say 0.0.0.0");
  address.host = std::string(host);
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return error("the port must be a number from 0 to 65535");
  }
  return address;
}

std::string DefaultSocketPath() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  const bool has_runtime_dir = runtime_dir != nullptr && *runtime_dir != '\0';
  return has_runtime_dir ? absl::StrCat(runtime_dir, "/opserve/opserve.sock")
                         : absl::StrCat("/tmp/opserve-", getuid(), "/opserve.sock");
}

}  // namespace opserve::server
