// How a client connects to its daemons, and how it repeats calls.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace opserve {

// Whom a connection trusts and as whom it introduces itself. Files are in PEM form. They are read
// again every few seconds, so that certificates can be renewed while the client lives; certificate
// and key must then be replaced together, for example by renaming a link to their directory.
struct TlsOptions {
  // Certificates of the authorities that may have signed the daemon's. Empty: the system's.
  std::string ca_file = {};

  // The client's certificate with its chain, and its key, for daemons that ask for one (mutual
  // TLS). Both or neither.
  std::string cert_file = {};
  std::string key_file = {};

  // The name that the daemon's certificate must have, if not the target's. A list of addresses has
  // no name, so it needs this.
  std::string server_name_override = {};
};

// How often calls that nothing but their repetition can help are repeated: see Client.
struct RetryOptions {
  // Attempts of one call, the first included, at least 1: 1 means never to repeat.
  int max_attempts = 5;

  // What the calls of a client may repeat together, so that it does not multiply an overload. A
  // repetition takes 1 from the budget, a success gives 0.1 back, up to this, from which it starts;
  // while less than half is left, nothing is repeated. At least 0, which means never to repeat.
  double budget = 10;
};

struct ConnectOptions {
  // How long Connect waits for the connection. Nothing: not at all; the first call connects.
  std::optional<absl::Duration> wait_for_ready = std::nullopt;

  // Nothing: not encrypted.
  std::optional<TlsOptions> tls = std::nullopt;

  // Sent with each call of every kind, as metadata "authorization: Bearer TOKEN". Empty: none. Not
  // sent with gRPC's own health checks of balanced targets. Without TLS it goes only to Unix
  // sockets and this machine's loopback addresses.
  std::string token = {};

  RetryOptions retry = {};

  // Gives the W3C traceparent of what the calling thread is about, to be sent with a call, so that
  // the daemon's log and receipts name its trace; an empty text, or one of other characters than a
  // traceparent has, is not sent. Called from the thread that starts the call, and again for each
  // repetition, which of ExecuteAsync comes from the client's thread. Nothing: no traces.
  std::function<std::string()> traceparent = {};
};

}  // namespace opserve
