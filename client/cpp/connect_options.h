// How a client connects to its daemons, and how it repeats calls.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opserve {

// The authorities a connection trusts, and its own certificate. Files are in PEM form. They are
// reread every few seconds, so that certificates can be renewed while the client lives; certificate
// and key must then be replaced together, as by renaming a link to their directory.
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
//
// A call that has certainly run nowhere, since no connection could be made or the daemon drains,
// waits for the daemon instead, until its timeout: that counts neither as an attempt nor against
// the budget. So the restart of a daemon costs time only. Faults that no restart mends (TLS on one
// side alone, a certificate, a server of another kind, a host without an address) fail at once.
struct RetryOptions {
  // Attempts of one call, the first included, at least 1: 1 means never to repeat, nor to wait for
  // a daemon that is away.
  int max_attempts = 5;

  // Whether calls wait for a daemon that is away; else that counts as a lost attempt.
  bool waits_for_daemon = true;

  // Told when a call begins to wait, and why, from the thread that makes the call (of ExecuteAsync:
  // the client's; of a stream: its own). Must not block. Nothing: calls wait without notice.
  std::function<void(const absl::Status& cause)> waiting = {};

  // The repetitions that all calls of a client may make together, so that it does not multiply an
  // overload. A repetition takes 1 from the budget, a success gives 0.1 back, up to this, from
  // which it starts; while less than half is left, nothing is repeated. A call that no daemon
  // answered, since its connection broke or there was none, is repeated once for nothing: that is
  // no overload. At least 0.
  double budget = 10;
};

// How a client notices that a daemon is gone without a word, as when its machine lost power or a
// link was cut: nothing else tells it, and calls would wait until their deadlines. Then they fail
// with kUnavailable, and calls that may be repeated go to another daemon. The defaults together are
// less than the default timeout of a call, so that there is time for that.
struct KeepaliveOptions {
  // How long nothing may come from a daemon that has calls of this client before it is asked
  // whether it is there. At least 1 ms; infinite: never asked.
  absl::Duration time = absl::Seconds(10);

  // The daemon's time to answer, and that of sent bytes to arrive; after it the connection counts
  // as broken. At least 1 ms.
  absl::Duration timeout = absl::Seconds(10);
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

  KeepaliveOptions keepalive = {};

  // Gives the W3C traceparent of the calling thread's work, to be sent with a call, so that the
  // daemon's log and receipts name its trace; an empty text, one of more than 256 bytes, or one of
  // other characters than a traceparent has, is not sent. Called from the thread that starts the
  // call, and again for each repetition, which of ExecuteAsync comes from the client's thread.
  // Nothing: no traces.
  std::function<std::string()> traceparent = {};

  // Whether requests travel together over one long stream, a session, instead of in a call each,
  // which costs client and daemon less for each of them. Execute, ExecuteAsync and prepared
  // programs use it once it is open, from the client's second request on. Requests above 1 MiB use
  // it from the first one on, their inputs in chunks, and may have more bytes than a message: but
  // for those with an idempotency key, those that change tensors, and prepared programs, which
  // remain calls. So do repetitions of small ones, and all requests where a daemon knows no
  // sessions. Of several daemons, by the target or by a proxy, each gets a session, which the
  // client finds out, and requests go to these in turn. Blocking calls, too, then wait for the
  // client's thread.
  bool session = true;
};

}  // namespace opserve
