/* numa-count.c - a QEMU (7.2) TCG plugin that counts local and remote memory accesses.
 *
 *   gcc -O2 -shared -fPIC numa-count.c -o numa-count.so     (numa-guest.sh --count does it)
 *   qemu-system-x86_64 -plugin numa-count.so,nodes=N,cpunodes=K,node-mb=M,out=FILE ...
 *
 * For every load and store of a program in the guest (user space only, kernel not counted) it
 * looks up which NUMA node's memory the address is in and which node the CPU belongs to, and
 * keeps a matrix CPU node x memory node. Where no memory is really slower, as in an emulated
 * machine, this is what tells whether placement works: the share of remote accesses.
 *
 * Everything counts, unless the program marks what it wants counted with the long no-ops of
 * numa/access_section.h (0f 1f 84 00 and a number); then only the sections count:
 *   0x0a551001  section begins on this CPU       0x0a551003  all counts become 0
 *   0x0a551002  section ends on this CPU         0x0a551004  the matrix is written to FILE
 * Each CPU has its own switch, so threads that are bound mark their sections independently and
 * the counts add up. One access of up to 64 bytes counts as one. The matrix is written at the end.
 *
 * With pages=K the K pages with most remote accesses are listed by their address in the program, for the
 * question whose memory it is: 7ff...: main thread's stack; 55...: the program and its heap; 7f...: mapped.
 *
 * It expects memory laid out as numa-guest.sh does: one memory backend per node, all of the
 * same size, in the order of the nodes; CPUs shared out evenly in order over the first
 * cpunodes nodes.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the part of QEMU's plugin interface, version 1, that is used here */
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef struct { const char *target_name; struct { int min, cur; } version; bool system_emulation; struct { int smp_vcpus, max_vcpus; } system; } qemu_info_t;
enum { CB_NO_REGS = 0, MEM_RW = 3 };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *), int, int, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { MAXCPU = 256, MAXNODE = 16 };
enum { SLOTS = 4096, MAXTRY = 64 };
enum { BEGIN = 1, END, RESET, PRINT };
/* one line per CPU, written by that CPU's thread only: no locks */
static struct { uint64_t n[MAXNODE + 1]; volatile int on; char pad[64]; } count[MAXCPU];
/* remote accesses by page of the program; a page that finds no slot is not listed */
static struct { uint64_t page, n; } hot[MAXCPU][SLOTS];
static int nodes = 2, cpunodes = 0, cpus = 4, runs = 0, pages = 0;
static volatile int marked = 0;
static uint64_t node_bytes = 1 << 30;
static FILE *out;

static void note_page(unsigned cpu, uint64_t page) {
  for (uint64_t i = 0, at = page * 0x9e3779b97f4a7c15u >> 52; i < MAXTRY; ++i, at = (at + 1) % SLOTS) {
    if (hot[cpu][at].n && hot[cpu][at].page != page) continue;
    hot[cpu][at].page = page;
    ++hot[cpu][at].n;
    return;
  }
}

static void mem(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *u) {
  (void)u;
  if (cpu >= MAXCPU || (marked && !count[cpu].on)) return;
  struct qemu_plugin_hwaddr *h = qemu_plugin_get_hwaddr(info, vaddr);
  if (!h || qemu_plugin_hwaddr_is_io(h)) return;
  /* QEMU 7.2 gives the offset of the node's block twice over: once for where the block is in
     QEMU's memory, once for where it is in the guest's */
  uint64_t node = qemu_plugin_hwaddr_phys_addr(h) / node_bytes / 2;
  ++count[cpu].n[node < (uint64_t)nodes ? node : MAXNODE];
  if (pages && node != cpu * (uint64_t)cpunodes / (uint64_t)cpus) note_page(cpu, vaddr >> 12);
}

static void list_pages(void) {
  uint64_t below = UINT64_MAX;
  for (int k = 0; k < pages; ++k) {  /* the greatest below the one before; ties are listed once */
    int c = -1, at = 0;
    for (int i = 0; i < cpus; ++i)
      for (int j = 0; j < SLOTS; ++j)
        if (hot[i][j].n < below && (c < 0 ? hot[i][j].n > 0 : hot[i][j].n > hot[c][at].n)) { c = i; at = j; }
    if (c < 0) return;
    below = hot[c][at].n;
    fprintf(out, "  page %" PRIx64 "000: %" PRIu64 " remote accesses by CPU %d\n", hot[c][at].page, below, c);
  }
}

static void report(void) {
  uint64_t everything = 0, remote = 0;
  ++runs;
  for (int a = 0; a < cpunodes; ++a) {
    uint64_t sum[MAXNODE + 1] = {0}, all = 0;
    for (int c = 0; c < cpus; ++c)
      if (c * cpunodes / cpus == a)
        for (int m = 0; m <= MAXNODE; ++m) { sum[m] += count[c].n[m]; all += count[c].n[m]; }
    everything += all;
    remote += all - sum[a];
    fprintf(out, "count %d: CPUs of node %d:", runs, a);
    for (int m = 0; m < nodes; ++m)
      fprintf(out, "  node %d %" PRIu64 " (%.2f %%)", m, sum[m], all ? 100.0 * (double)sum[m] / (double)all : 0.0);
    fprintf(out, "%s\n", sum[MAXNODE] ? "  (some elsewhere)" : "");
  }
  fprintf(out, "remote share of %s: %.3f %% of %" PRIu64 " accesses\n", marked ? "the marked sections" : "everything",
          everything ? 100.0 * (double)remote / (double)everything : 0.0, everything);
  list_pages();
  fflush(out);
}

static void forget(void) {
  memset(hot, 0, sizeof hot);
  for (int c = 0; c < MAXCPU; ++c) memset(count[c].n, 0, sizeof count[c].n);
}

static void mark(unsigned cpu, void *what) {
  if (cpu >= MAXCPU) return;
  if (!marked) { forget(); marked = 1; }
  switch ((int)(intptr_t)what) {
    case BEGIN: count[cpu].on = 1; break;
    case END: count[cpu].on = 0; break;
    case RESET: forget(); break;
    case PRINT: report(); break;
  }
}

/* which mark an instruction is, 0 if none */
static int mark_of(const unsigned char *b, size_t size) {
  static const unsigned char head[] = {0x0f, 0x1f, 0x84, 0x00};
  if (size != 8 || memcmp(b, head, sizeof head) || b[5] != 0x10 || b[6] != 0x55 || b[7] != 0x0a) return 0;
  return b[4] >= BEGIN && b[4] <= PRINT ? b[4] : 0;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  size_t n = qemu_plugin_tb_n_insns(tb);
  for (size_t i = 0; i < n; ++i) {
    struct qemu_plugin_insn *in = qemu_plugin_tb_get_insn(tb, i);
    if (qemu_plugin_insn_vaddr(in) >> 47) continue;  /* kernel */
    int what = mark_of(qemu_plugin_insn_data(in), qemu_plugin_insn_size(in));
    if (what) qemu_plugin_register_vcpu_insn_exec_cb(in, mark, CB_NO_REGS, (void *)(intptr_t)what);
    qemu_plugin_register_vcpu_mem_cb(in, mem, CB_NO_REGS, MEM_RW, NULL);
  }
}

static void end(qemu_plugin_id_t id, void *u) {
  (void)id; (void)u;
  report();
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  cpus = info->system.max_vcpus;
  for (int i = 0; i < argc; ++i) {
    char *v = strchr(argv[i], '=');
    if (!v) return -1;
    *v++ = 0;
    if (!strcmp(argv[i], "nodes")) nodes = atoi(v);
    else if (!strcmp(argv[i], "cpunodes")) cpunodes = atoi(v);
    else if (!strcmp(argv[i], "node-mb")) node_bytes = strtoull(v, NULL, 10) << 20;
    else if (!strcmp(argv[i], "pages")) pages = atoi(v);
    else if (!strcmp(argv[i], "out")) out = fopen(v, "w");
    else return -1;
  }
  if (!cpunodes) cpunodes = nodes;
  if (!out) out = stderr;
  if (nodes > MAXNODE || cpus > MAXCPU) { fprintf(stderr, "numa-count: too many nodes or CPUs\n"); return -1; }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, end, NULL);
  return 0;
}
