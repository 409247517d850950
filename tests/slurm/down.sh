#!/usr/bin/env bash
# usage: down.sh DIR   ends the cluster of up.sh: its jobs, then the daemons by
# their pid files; waits until they are gone. The control groups that they made, too.
set -uo pipefail
dir=$1
# shellcheck source=/dev/null
. "$dir/env" 2>/dev/null && timeout 10 scancel --state=RUNNING,PENDING --user="$(id -un)" 2>/dev/null
pids=()
for f in slurmd.pid slurmctld.pid munge/pid; do
  [ -s "$dir/$f" ] && pids+=("$(cat "$dir/$f")")
done
[ ${#pids[@]} = 0 ] && exit 0
kill "${pids[@]}" 2>/dev/null
for i in $(seq 50); do
  kill -0 "${pids[@]}" 2>/dev/null || break
  [ "$i" != 50 ] || kill -9 "${pids[@]}" 2>/dev/null
  sleep 0.2
done
# Only groups without processes can be removed.
if [ -s "$dir/cgroups" ]; then
  find "/sys/fs/cgroup/memory/slurm_$(cat "$dir/cgroups")" "/sys/fs/cgroup/freezer/slurm_$(cat "$dir/cgroups")" -depth -type d -exec rmdir {} + 2>/dev/null
fi
exit 0
