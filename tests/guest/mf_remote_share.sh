#!/bin/sh
# Trains a factor model on two NUMA nodes and counts the memory accesses of its inner loop: at most 5 % may be remote.
#
#   mf_remote_share.sh numa-guest.sh orrery [threads [rank]]
#
# Data and model are small, as the emulated processor is slow; small is also the harder case, because everything that is
# not factors (stacks, the program's constants) weighs more. Exit status 125: no guest here (CTest: skipped).
set -eu
guest=$1 orrery=$2 threads=${3:-4} rank=${4:-16}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$orrery" data generate ratings --users 2000 --items 500 --ratings 40000 --threads 1 --out "$folder/ratings.txt"
"$guest" --nodes 2 --cpus 4 --mem-mb 1024 --count --count-pages 12 --max-remote 5 -- \
  "$orrery" train mf "$folder/ratings.txt" --out "$folder/run" --rank "$rank" --threads "$threads" --iterations 3 --quiet
