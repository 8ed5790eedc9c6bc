#!/bin/bash
# mpi_hosts.sh - run an MPI program on several "hosts" of one Linux machine, over real TCP.
#
#   mpi_hosts.sh [options] -- command [args...]
#
# Every host is a network namespace with an address of its own on a private Ethernet switch
# (10.77.0.1, .2, ...), and with its own host name, hosts file, SysV IPC and /dev/shm. Open MPI
# is started on the first host (h0) and starts its daemons on the others through an "rsh agent"
# that enters the namespaces, so it treats them as separate nodes: no shared memory between
# them, only TCP, whose delay, loss and rate can be set. The switch is in a namespace too, so
# nothing of the machine's own network is touched. Everything is taken down at the end, also
# after an error or a signal. The file system is the machine's own, the same on every host.
#
# options
#   --hosts N        number of hosts, h0 .. hN-1                      (default 2)
#   --slots S        ranks per host                                   (default 1)
#   --np P           ranks in all                                     (default N x S)
#   --delay D        each frame's delay one way, e.g. 500us, 1ms      (default none)
#   --jitter J       delay varies by +- J                             (default none)
#   --loss P         percent of frames lost                           (default none)
#   --rate R         rate per host and direction, e.g. 100mbit, 1gbit (default unlimited)
#   --link H:k=v,... other values for host H: delay=, jitter=, loss=, rate=  (may be repeated)
#   --switch KIND    auto, netem (kernel) or tap (tap_switch.cpp beside this script, for kernels
#                    without sch_netem; needs g++)                    (default auto)
#   --stop R@T+D     T seconds after the start stop rank R (SIGSTOP) for D seconds
#   --kill R@T       kill rank R (SIGKILL) at T
#   --down H@T+D     take host H's link down at T for D seconds (without +D: for good)
#   --kill-host H@T  kill all of host H's processes, Open MPI's daemon too, at T
#                    (each may be repeated; H and R count from 0; "the start" is when the ranks
#                    concerned are seen running)
#   --no-sm          no shared memory between ranks of one host either
#   --ucx            UCX instead of Open MPI's own transports (needed for one-sided operations
#                    between hosts under MPI_THREAD_MULTIPLE)
#   --no-yield       ranks spin without yielding while they wait (right only with a core each)
#   --opt WORD       one more word for mpirun's command line (may be repeated)
#   --timeout S      give up after S seconds                          (default 600)
#   --verbose        say what is done
#
# exit status
#   mpirun's own (that of the first rank that failed; 128+n, or 137 for a killed rank)
#   124  stopped after --timeout
#   125  the hosts could not be set up: one line on stderr says why
#
# needs root and (Debian 12): apt-get install openmpi-bin iproute2 util-linux
# All hosts share this machine's cores: ranks are not bound to cores and yield while waiting.

set -u
prog=${0##*/}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "$prog: $*" >&2; exit 125; }
say() { [ "$verbose" = 1 ] && echo "$prog: $*" >&2; return 0; }

hosts=2 slots=1 np= delay=0 jitter=0 loss=0 rate=0 kind=auto sm=1 ucx=0 yield=1 timeout=600 verbose=0
links=() events=() opts=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-sm|--ucx|--no-yield|--verbose|-h|--help|--) ;;
    --*) [ $# -ge 2 ] || die "option $1 needs a value";;
  esac
  case $1 in
    --hosts) hosts=$2; shift 2;;     --slots) slots=$2; shift 2;;
    --np) np=$2; shift 2;;           --delay) delay=$2; shift 2;;
    --jitter) jitter=$2; shift 2;;   --loss) loss=$2; shift 2;;
    --rate) rate=$2; shift 2;;       --link) links+=("$2"); shift 2;;
    --switch) kind=$2; shift 2;;     --opt) opts+=("$2"); shift 2;;
    --stop|--kill|--down|--kill-host) events+=("${1#--} $2"); shift 2;;
    --no-sm) sm=0; shift;;           --ucx) ucx=1; shift;;
    --no-yield) yield=0; shift;;     --timeout) timeout=$2; shift 2;;
    --verbose) verbose=1; shift;;
    -h|--help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 0;;
    --) shift; break;;
    -*) die "unknown option $1 (see --help)";;
    *) break;;
  esac
done
[ $# -gt 0 ] || die "no command given (see --help)"
for v in "$hosts" "$slots" "${np:-1}" "$timeout"; do
  case $v in ''|*[!0-9]*|0) die "'$v' is no positive number";; esac; done
[ "$hosts" -le 200 ] || die "at most 200 hosts"
np=${np:-$((hosts * slots))}
[ "$(id -u)" = 0 ] || die "root is needed for network namespaces"
for t in ip tc unshare mpirun mount; do command -v $t >/dev/null || die "$t not found (apt-get install openmpi-bin iproute2 util-linux)"; done

# 1ms, 500us, 2s -> microseconds; 100mbit, 1gbit -> bits per second
usec() { awk -v s="$1" 'BEGIN { if (!match(s, /^[0-9.]+/)) exit 1; n = substr(s, 1, RLENGTH) + 0; u = substr(s, RLENGTH + 1)
  f = u == "us" ? 1 : u == "ms" ? 1000 : u == "s" ? 1e6 : (u == "" && n == 0) ? 1 : 0; if (!f) exit 1; printf "%.0f", n * f }'; }
bits() { awk -v s="$1" 'BEGIN { if (!match(s, /^[0-9.]+/)) exit 1; n = substr(s, 1, RLENGTH) + 0; u = tolower(substr(s, RLENGTH + 1))
  f = u == "gbit" ? 1e9 : u == "mbit" ? 1e6 : u == "kbit" ? 1e3 : u == "bit" ? 1 : (u == "" && n == 0) ? 1 : 0; if (!f) exit 1; printf "%.0f", n * f }'; }
declare -a D J L R
for ((h = 0; h < hosts; h++)); do
  D[h]=$(usec "$delay") || die "--delay $delay: e.g. 500us or 1ms"
  J[h]=$(usec "$jitter") || die "--jitter $jitter: e.g. 100us"
  R[h]=$(bits "$rate") || die "--rate $rate: e.g. 100mbit or 1gbit"
  L[h]=$loss
done
for l in "${links[@]}"; do
  h=${l%%:*}; case $h in ''|*[!0-9]*) die "--link $l: H:key=value,...";; esac
  [ "$h" -lt "$hosts" ] || die "--link $l: no host $h"
  IFS=, read -ra kvs <<<"${l#*:}"
  for kv in "${kvs[@]}"; do
    case $kv in
      delay=*) D[h]=$(usec "${kv#*=}") || die "--link $l";;  jitter=*) J[h]=$(usec "${kv#*=}") || die "--link $l";;
      rate=*) R[h]=$(bits "${kv#*=}") || die "--link $l";;   loss=*) L[h]=${kv#*=};;
      *) die "--link $l: unknown $kv";;
    esac
  done
done
shaped=0
for ((h = 0; h < hosts; h++)); do [ "${D[h]}${J[h]}" = 00 ] && [ "${L[h]}" = 0 ] || shaped=1; done
for e in "${events[@]}"; do
  case $e in
    'stop '*) pat='^[0-9]+@[0-9.]+\+[0-9.]+$';; 'down '*) pat='^[0-9]+@[0-9.]+(\+[0-9.]+)?$';; *) pat='^[0-9]+@[0-9.]+$';; esac
  [[ ${e#* } =~ $pat ]] || die "--$e: see --help"
  n=${e#* }; n=${n%%@*}
  case $e in stop*|kill\ *) [ "$n" -lt "$np" ] || die "--$e: no rank $n";; *) [ "$n" -lt "$hosts" ] || die "--$e: no host $n";; esac
done

# ---- teardown first: it also undoes a setup that failed half way --------------------------
id=mh$$
dir=$(mktemp -d "${TMPDIR:-/tmp}/mpi-hosts.XXXXXX") || die "mktemp failed"
pids=() mpid= spid=
mkfifo "$dir/never" && exec 7<>"$dir/never"
nap() { read -r -t "$1" -u 7; }   # a sleep without a process that would outlive us
cleanup() {
  trap '' INT TERM HUP
  [ ${#pids[@]} -gt 0 ] && kill -9 "${pids[@]}" 2>/dev/null
  if [ -n "$mpid" ]; then kill -TERM "$mpid" 2>/dev/null; for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$mpid" 2>/dev/null || break; sleep 0.2; done; fi
  local h left
  for _ in 1 2 3; do   # whatever still lives in the namespaces made here
    left=; for ((h = 0; h < hosts; h++)); do left="$left $(ip netns pids $id-h$h 2>/dev/null)"; done
    [ -n "${left// /}" ] || break
    kill -9 $left 2>/dev/null; sleep 0.1
  done
  [ -n "$spid" ] && kill "$spid" 2>/dev/null
  for ((h = 0; h < hosts; h++)); do ip netns del $id-h$h 2>/dev/null; done
  ip netns del $id-sw 2>/dev/null
  rm -rf "$dir"
}
trap cleanup EXIT; trap 'exit 130' INT; trap 'exit 143' TERM HUP

# ---- hosts and switch --------------------------------------------------------------------
ip netns add $id-sw 2>"$dir/log" || die "cannot make a network namespace: $(cat "$dir/log")"
for ((h = 0; h < hosts; h++)); do ip netns add $id-h$h || die "cannot make namespace $h"; done
if [ $kind = auto ]; then
  kind=netem
  if [ $shaped = 1 ]; then
    ip netns exec $id-sw tc qdisc add dev lo root netem delay 1ms 2>/dev/null || kind=tap
    ip netns exec $id-sw tc qdisc del dev lo root 2>/dev/null
  fi
fi
case $kind in
  netem)
    ip -n $id-sw link add br0 type bridge 2>"$dir/log" || die "no bridge in this kernel: $(cat "$dir/log")"
    ip -n $id-sw link set br0 up
    for ((h = 0; h < hosts; h++)); do
      ip -n $id-sw link add p$h type veth peer name eth0 netns $id-h$h 2>"$dir/log" || die "no veth in this kernel: $(cat "$dir/log")"
      ip -n $id-sw link set p$h master br0 up
      if [ "${D[h]}${J[h]}" != 00 ] || [ "${L[h]}" != 0 ]; then   # what the host sends is delayed on its way into the switch
        tc -n $id-h$h qdisc add dev eth0 root handle 1: netem delay ${D[h]}us ${J[h]}us loss ${L[h]}% limit 100000 2>"$dir/log" ||
          die "no netem in this kernel: $(cat "$dir/log"); use --switch tap"
        parent='parent 1:'
      else parent=root; fi
      if [ "${R[h]}" != 0 ]; then
        b=$((R[h] / 8 / 1000)); [ $b -lt 16384 ] && b=16384   # bucket: 1 ms, at least 16 kB
        tc -n $id-h$h qdisc add dev eth0 $parent tbf rate ${R[h]}bit burst $b limit 4000000 || die "tbf failed"
        tc -n $id-sw qdisc add dev p$h root tbf rate ${R[h]}bit burst $b limit 4000000 || die "tbf failed"
      fi
    done;;
  tap)
    command -v g++ >/dev/null || die "g++ not found: needed to build tap_switch.cpp, as this kernel has no netem"
    [ -e "$here/tap_switch.cpp" ] || die "tap_switch.cpp is not beside this script"
    [ -c /dev/net/tun ] || die "no /dev/net/tun, so no tap devices"
    g++ -std=c++17 -O2 "$here/tap_switch.cpp" -o "$dir/tap_switch" 2>"$dir/log" || die "tap_switch.cpp: $(head -1 "$dir/log")"
    args=()
    for ((h = 0; h < hosts; h++)); do args+=("p$h,delay=${D[h]},jitter=${J[h]},loss=${L[h]},rate=${R[h]}"); done
    ip netns exec $id-sw "$dir/tap_switch" "${args[@]}" >"$dir/sw.out" 2>"$dir/sw.err" 7>&- &
    spid=$!; disown
    for _ in $(seq 100); do grep -q ready "$dir/sw.out" && break; kill -0 $spid 2>/dev/null || break; sleep 0.05; done
    grep -q ready "$dir/sw.out" || die "the switch did not start: $(cat "$dir/sw.err")"
    for ((h = 0; h < hosts; h++)); do ip -n $id-sw link set p$h netns $id-h$h name eth0 || die "cannot move a tap device"; done;;
  *) die "--switch $kind: auto, netem or tap";;
esac
echo "127.0.0.1 localhost" >"$dir/hosts"
list=
for ((h = 0; h < hosts; h++)); do
  ip -n $id-h$h link set lo up
  ip -n $id-h$h addr add 10.77.0.$((h + 1))/24 dev eth0 && ip -n $id-h$h link set eth0 up || die "cannot set up host $h"
  echo "10.77.0.$((h + 1)) h$h" >>"$dir/hosts"; list=$list,h$h:$slots
done

# enter HOST WORDS...: run the words in a shell on that host; it is also Open MPI's rsh agent
cat >"$dir/enter" <<AGENT
#!/bin/bash
h=\$1; shift
exec ip netns exec $id-\$h unshare --mount --uts --ipc /bin/bash -c '
  echo "\$1" >/proc/sys/kernel/hostname
  mount --bind "$dir/hosts" /etc/hosts && mount -t tmpfs shm /dev/shm || exit 125
  shift; eval "exec \$*"' enter "\$h" "\$@"
AGENT
chmod +x "$dir/enter"; mkdir "$dir/tmp"

# ---- mpirun ------------------------------------------------------------------------------
run=(mpirun --np "$np" --host "${list#,}" --bind-to none
  --mca plm_rsh_agent "$dir/enter" --mca plm_rsh_no_tree_spawn 1
  --mca oob_tcp_if_include eth0 --mca orte_tmpdir_base "$dir/tmp")
if [ $ucx = 1 ]; then
  run+=(--mca pml ucx --mca osc sm,ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any)
  export UCX_NET_DEVICES=eth0 UCX_TLS=tcp,self
  [ $sm = 1 ] && UCX_TLS=tcp,self,sm
else
  btl=tcp,self; [ $sm = 1 ] && [ "$slots" -gt 1 ] && btl=tcp,self,vader
  # osc/rdma over vader crashes in MPI_Compare_and_swap (Open MPI 4.1): sm and pt2pt remain
  run+=(--mca pml ob1 --mca btl $btl --mca btl_tcp_if_include eth0 --mca osc ^rdma,ucx)
fi
[ $yield = 1 ] && run+=(--mca mpi_yield_when_idle 1)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export MPI_HOSTS_ID=$id MPI_HOSTS=$hosts
run+=("${opts[@]}" "$@")
say "$kind switch, ${run[*]}"
words=$(printf '%q ' cd "$PWD"); words+="&& exec $(printf '%q ' "${run[@]}")"
"$dir/enter" h0 /bin/bash -c "$(printf %q "$words")" 7>&- &
mpid=$!

# ---- faults on time ----------------------------------------------------------------------
rank_pid() {  # the process that Open MPI's daemon started as rank $1
  local h p q
  for ((h = 0; h < hosts; h++)); do for p in $(ip netns pids $id-h$h 2>/dev/null); do
    grep -qzx "OMPI_COMM_WORLD_RANK=$1" /proc/$p/environ 2>/dev/null || continue
    q=$(awk '/^PPid:/{print $2}' /proc/$p/status 2>/dev/null)
    grep -qz '^OMPI_COMM_WORLD_RANK=' /proc/$q/environ 2>/dev/null || { echo $p; return 0; }
  done; done; return 1
}
fault() {  # kind spec
  local n=${2%%@*} t=${2#*@} d= r p=
  case $t in *+*) d=${t#*+}; t=${t%+*};; esac
  r=$n; case $1 in down|kill-host) r=$((np - 1));; esac
  while ! p=$(rank_pid $r); do nap 0.05; done
  nap "$t"
  case $1 in
    stop) say "stop rank $n (process $p)"; kill -STOP $p; nap "$d"; kill -CONT $p && say "rank $n goes on";;
    kill) say "kill rank $n (process $p)"; kill -KILL $p;;
    down) say "host $n's link down"; ip -n $id-h$n link set eth0 down
      if [ -n "$d" ]; then nap "$d"; ip -n $id-h$n link set eth0 up; say "host $n's link up"; fi;;
    kill-host) say "kill host $n"; kill -KILL $(ip netns pids $id-h$n);;
  esac
}
for e in "${events[@]}"; do fault ${e%% *} "${e#* }" & pids+=($!); disown; done
(nap "$timeout"; : >"$dir/late"; kill -TERM $mpid; nap 5; kill -KILL $mpid) 2>/dev/null & pids+=($!); disown
{ wait $mpid; rc=$?; } 2>/dev/null
mpid=
[ $spid ] && [ $verbose = 1 ] && { kill -USR1 $spid; sleep 0.2; cat "$dir/sw.err" >&2; }
[ -e "$dir/late" ] && { echo "$prog: stopped after $timeout s" >&2; exit 124; }
exit $rc
