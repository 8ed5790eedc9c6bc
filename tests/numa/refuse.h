// Makes the kernel refuse to bind threads and to place memory, as containers do.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace orrery::test {

/// For the calling process until it ends; use it in a child. False where filters are not possible.
inline bool refuse_placement() {
  constexpr std::array kCalls{SYS_sched_setaffinity, SYS_mbind, SYS_move_pages, SYS_set_mempolicy, SYS_get_mempolicy};
  std::array<sock_filter, kCalls.size() + 3> program{};
  std::size_t at = 0;
  program[at++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    const auto to_refusal = static_cast<unsigned char>(kCalls.size() - i);
    program[at++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(kCalls[i]), to_refusal, 0);
  }
  program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  program[at++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  sock_fprog filter{static_cast<unsigned short>(at), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace orrery::test
