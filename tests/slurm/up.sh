#!/usr/bin/env bash
# usage: up.sh DIR [GPUS]   a SLURM cluster of this one machine, as root and
# without systemd, in DIR; its GPUs are character devices that only count. Where
# control groups of version 1 can be made, a job's memory is limited by one, and
# DIR/cgroups is there. Source DIR/env to talk to it; down.sh DIR stops it.
# Debian: slurmctld slurmd slurm-client munge.
set -euo pipefail
mkdir -p "$1"
dir=$(cd "$1" && pwd)
gpus=${2:-2}
host=$(hostname -s)
mkdir -p "$dir"/{state,spool,log,dev,munge}
chmod 711 "$dir"
for ((i = 0; i < gpus; i++)); do
  # Without the right to make devices plain files do, but CUDA_VISIBLE_DEVICES stays unset.
  mknod "$dir/dev/gpu$i" c 1 3 2>/dev/null || : >"$dir/dev/gpu$i"
  echo "NodeName=$host Name=gpu File=$dir/dev/gpu$i"
done >"$dir/gres.conf"
# Version 2 would need systemd.
track=linuxproc task=none
groups=/sys/fs/cgroup
mine=strata-test-$$
if mkdir "$groups/memory/$mine" "$groups/freezer/$mine" 2>/dev/null && echo 67108864 2>/dev/null >"$groups/memory/$mine/memory.limit_in_bytes"; then
  track=cgroup task=cgroup
  printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no CgroupMountpoint="$groups" ConstrainRAMSpace=yes >"$dir/cgroup.conf"
  echo "$host" >"$dir/cgroups"
fi
rmdir "$groups"/{memory,freezer}/"$mine" 2>/dev/null || true
# Two ports that nobody listens on, so that clusters of several users of this machine do not meet.
port=$((20000 + $$ % 10000))
while grep -qiE ":($(printf '%04x|%04x' $port $((port + 1)))) " /proc/net/tcp /proc/net/tcp6 2>/dev/null; do port=$((port + 2)); done
cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=$dir/munge/socket
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
ProctrackType=proctrack/$track
TaskPlugin=task/$task
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=900
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 Gres=gpu:$gpus State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=1-00:00:00 State=UP OverSubscribe=NO
PartitionName=short Nodes=$host MaxTime=1-06:00:00 State=UP
PartitionName=long Nodes=$host MaxTime=10-00:00:00 State=UP
PartitionName=gpu_short Nodes=$host MaxTime=04:00:00 State=UP
PartitionName=gpu_long Nodes=$host MaxTime=2-12:00:00 State=UP
CONF
echo "export SLURM_CONF=$dir/slurm.conf" >"$dir/env"
export SLURM_CONF=$dir/slurm.conf
# munged runs as its own user and refuses a folder that others may write.
dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
chown -R munge "$dir/munge"
chmod 711 "$dir/munge"
chmod 400 "$dir/munge/key"
setpriv --reuid munge --regid munge --clear-groups munged --force --key-file="$dir/munge/key" \
  --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
slurmctld -c
slurmd -c
for _ in $(seq 100); do
  [ "$(sinfo -h -p main -o %T 2>/dev/null)" = idle ] && exit 0
  sleep 0.2
done
echo "the node did not come up:" >&2
tail -n 5 "$dir"/log/*.log >&2
exit 1
