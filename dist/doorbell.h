// How the communication thread waits (design section 7). MPI has no way to sleep until a message comes, and polling it
// every 150 us costs a virtual machine more than a tenth of a core. So whoever has sent something rings: a datagram, on
// a Unix socket within a host and by UDP between hosts. A ring carries nothing and may get lost; then the message is
// found when the wait ends, which is bounded all the same. Where rings do not get through at all (a firewall) waits are
// short: who was never heard ringing is not relied upon.
#pragma once

#include <netinet/in.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/types.h"

namespace orrery::dist {

class Doorbell {
 public:
  /// Where a rank's bell is; bytes that ranks tell each other.
  struct Address {
    std::uint64_t name = 0;  ///< of the Unix socket
    struct Interface {
      std::uint32_t address = 0, mask = 0;  ///< network byte order; 0: none
    };
    std::array<Interface, 4> interfaces{};
    std::uint16_t port = 0;  ///< of the UDP socket, network byte order; 0: none
    std::uint16_t unused[3] = {};
  };

  Doorbell();
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  Address address() const;
  /// Whose bell is where. From now on ring() works.
  void meet(NodeId self, const std::vector<Address>& bells, const std::vector<bool>& on_this_host);

  /// Wakes the rank. Never waits, never fails: see above.
  void ring(NodeId rank);
  /// Wakes wait() of this process, now or when it is called next. Any thread.
  void poke();
  enum class Woken { by_time, by_poke, by_ring };
  /// Returns when rung or poked, or after `most`. `has_work` is asked once more before it sleeps, and counts as a poke:
  /// what was posted after that pokes.
  Woken wait(std::chrono::microseconds most, const std::function<bool()>& has_work);
  /// Every rank has been heard ringing, but for those that are `not_expected`.
  bool hears_all() const { return unheard_ == 0; }
  void not_expected(NodeId rank);

 private:
  struct Target {
    sockaddr_in address{};  ///< family AF_INET, or 0 when the name is to be used
    std::uint64_t name = 0;
    bool heard = false;
  };
  void take_rings(int socket);

  int local_ = -1, remote_ = -1, event_ = -1;
  std::uint64_t name_ = 0;
  std::uint64_t job_ = 0;  ///< the same for all ranks of a job: strangers' datagrams count for nothing
  NodeId self_ = 0;
  std::vector<Target> targets_;
  std::size_t unheard_ = 0;
  std::atomic<bool> asleep_{false};
};

}  // namespace orrery::dist
