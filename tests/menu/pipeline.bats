# The pipeline: its parameters, partitions, what runs it.
load lib

# A workflow beside the script, and a nextflow that records.
pipeline_setup() {
  mkdir -p "$T/lone" "$T/nextflow" "$T/in put"
  cp "$menu" "$T/lone/"
  menu=$T/lone/bmrc_run.sh
  touch "$T/nextflow/main.nf"
  fake nextflow 'printf "%q\n" "$@" >"$RECORD"; echo "$PATH" >"$RECORD.path"; exit ${EXIT:-0}'
}

# pipeline WORD...: without a terminal.
pipeline() { run "$menu" --image "$T/strata.sif" pipeline "$@" </dev/null; }

# param NAME: its value in params.yml, in JSON.
param() { yq -c ".$1" "${params:-$T/in put-results/params.yml}"; }
json() { /usr/bin/env PATH=/usr/bin:/usr/local/bin python3 -c 'import json, sys; print(json.dumps(sys.argv[1], ensure_ascii=False))' "$1"; }

slurm() { # slurm PARTITION...: a cluster that has them
  fake sbatch true
  fake sinfo "[ \"\$*\" = '-h -o %R' ] && printf '%s\n' $*"
}

@test "params.yml, and the command" {
  pipeline_setup
  EXIT=3 pipeline --input "$T/in put" --profile local --no-gpu --stack_blend true -c 'my own.config'
  same "$status" 3
  same "$(param input)" "\"$T/in put\""
  same "$(param outdir)" "\"$T/in put-results\""
  same "$(param use_gpu)" false
  same "$(param container)" "\"$T/strata.sif\""
  same "$(yq -c 'keys | sort' "$T/in put-results/params.yml")" '["container","input","outdir","use_gpu"]'
  given run "$T/nextflow/main.nf" -params-file "$T/in put-results/params.yml" -profile local,apptainer -work-dir "$T/in put-results/work" -resume \
    --stack_blend true -c 'my own.config'
  said "$T/in put-results/params.yml:"
  said "nextflow run $T/nextflow/main.nf -params-file"
  /usr/bin/grep -q "nextflow run $T/nextflow/main.nf -params-file" "$log"
}

@test "params.yml: links that others have put beside it are not followed" {
  pipeline_setup
  local dir="$T/in put-results"
  mkdir "$dir"
  echo mine >"$T/victim"
  # Of the next processes; one process makes them all.
  /usr/bin/env PATH=/usr/bin:/usr/local/bin python3 -c 'import os, sys; [os.symlink("../victim", f"{sys.argv[1]}/params.yml.{int(sys.argv[2]) + i}") for i in range(2000)]' "$dir" $BASHPID
  pipeline --input "$T/in put" --profile local
  same "$status" 0
  same "$(cat "$T/victim")" mine
  same "$(param input)" "\"$T/in put\""
}

@test "params.yml: any name of a folder is a string" {
  pipeline_setup
  local name
  for name in "it's" 'dou"ble' 'a: b' '#no comment' '- x' 'yes' '1e3' '{a}' '$(touch evil)' 'back\n' 'ü *&!' "''" '%' 'end '; do
    mkdir "$T/$name"
    pipeline --input "$T/$name" --outdir "$T/out $name" --profile local --account x
    same "$status" 0
    params="$T/out $name/params.yml"
    same "$(param '| [.input, .outdir]')" "[$(json "$T/$name"),$(json "$T/out $name")]"
  done
  cd "$T/- x"
  pipeline --input . --outdir '../out #2' --profile local
  same "$(params="$T/out #2/params.yml" param '| [.input, .outdir]')" "[\"$T/- x\",\"$T/out #2\"]"
  no ls evil "$T"/*/evil
}

@test "what a cluster wants: account, partitions, a module for the tasks" {
  pipeline_setup
  slurm short long gpu_short gpu_long main
  pipeline --input "$T/in put" --profile=slurm --gpu --account group.prj --partition short --gpu-partition=gpu_long
  same "$status" 0
  same "$(param '| [.account, .partition, .gpu_partition, .use_gpu]')" '["group.prj","short","gpu_long",true]'
  /usr/bin/grep -qx 'slurm\\,apptainer' "$RECORD"
  mkdir -p "$T/modules/init" "$T/module"
  mv "$T/bin/apptainer" "$T/module/"
  echo "module() { PATH=\$PATH:$T/module; }" >"$T/modules/init/bash"
  MODULESHOME=$T/modules STRATA_MODULE=Apptainer pipeline --input "$T/in put" --profile bmrc
  same "$status" 0
  same "$(param modules)" '"Apptainer"'
}

@test "a partition that does not exist: those that do are named" {
  pipeline_setup
  slurm main main gpu_short
  pipeline --input "$T/in put" --profile slurm --partition gpu_shrt
  fails_with 2 'profile slurm: partition gpu_shrt does not exist (nearest: gpu_short): this cluster has gpu_short main'
  pipeline --input "$T/in put" --profile slurm --partition main --gpu_partition other
  fails_with 2 'partition other does not exist'
  pipeline --input "$T/in put" --profile bmrc --no-gpu
  fails_with 2 'profile bmrc: partition short does not exist'
  pipeline --input "$T/in put" --profile bmrc --no-gpu --short_partition main --long_partition main
  same "$status" 0
  pipeline --input "$T/in put" --profile slurm --partition main,gpu_short
  same "$status" 0
  pipeline --input "$T/in put" --profile slurm --partition main,nain
  fails_with 2 'partition nain does not exist (nearest: main)'
  pipeline --input "$T/in put" --profile bmrc --no-gpu --partition main
  same "$status" 0
  pipeline --input "$T/in put" --profile bmrc --gpu --partition main
  fails_with 2 'partition gpu_long does not exist'
  fake sinfo 'echo "slurm_load_partitions: Unable to contact slurm controller" >&2; exit 1'
  pipeline --input "$T/in put" --profile slurm --partition main
  fails_with 2 'sinfo: slurm_load_partitions: Unable to contact'
  rm "$T/bin/sinfo" "$T/bin/sbatch"
  pipeline --input "$T/in put" --profile slurm
  fails_with 2 'profile slurm: there is no sbatch here'
}

@test "wrong input" {
  pipeline_setup
  pipeline
  fails_with 2 'pipeline: --input is missing'
  pipeline --input
  fails_with 2 '--input needs a value'
  pipeline --input "$T/nothing"
  fails_with 3 "input folder $T/nothing: no such folder"
  pipeline --input "$T/in put" --profile bmcr
  fails_with 2 "'bmcr' is no profile (nearest: bmrc): want local, slurm or bmrc"
  pipeline --input "$T/in put" --account 'a b'
  fails_with 2 "--account: 'a b' is no account"
  pipeline --input "$T/in put" --outdir "$T/strata.sif/out"
  fails_with 3 "output folder $T/strata.sif/out: $T/strata.sif is not a folder"
  /usr/bin/chmod 777 "$T/home"
  other_user "$menu" --image "$T/strata.sif" pipeline --input "$T/in put" --outdir /usr/out
  fails_with 3 'output folder /usr/out: no permission to write to /usr (drwxr-xr-x root:root)'
  [ ! -e "$RECORD" ]
}

@test "singularity has a profile of its own" {
  pipeline_setup
  mv "$T/bin/apptainer" "$T/bin/singularity"
  pipeline --input "$T/in put" --profile local
  same "$status" 0
  same "$(param container)" "\"$T/strata.sif\""
  /usr/bin/grep -qx 'local\\,singularity' "$RECORD"
}

@test "a dry run writes nothing" {
  pipeline_setup
  run "$menu" --image "$T/strata.sif" -n pipeline --input "$T/in put" --profile local
  same "$status" 0
  said "-params-file $T/in\\ put-results/params.yml"
  [ ! -e "$T/in put-results" ]
  [ ! -e "$log" ]
}

@test "a params.yml that differs is kept" {
  pipeline_setup
  pipeline --input "$T/in put" --profile local
  pipeline --input "$T/in put" --profile local
  [ ! -e "$T/in put-results/params.yml~" ]
  echo 'stack_blend: true' >>"$T/in put-results/params.yml"
  pipeline --input "$T/in put" --profile local
  /usr/bin/grep -qx 'stack_blend: true' "$T/in put-results/params.yml~"
  no /usr/bin/grep -q stack_blend "$T/in put-results/params.yml"
  pipeline --input "$T/in put" --profile local --params "$T/my params/p.yml"
  same "$(params="$T/my params/p.yml" param input)" "\"$T/in put\""
}

@test "paths as programs in the image see them" {
  pipeline_setup
  mkdir "$T/data/mosaics"
  [ ! -e /data/mosaics ] || skip 'this machine has /data/mosaics'
  DATA_DIR=$T/data pipeline --input /data/mosaics --profile local
  same "$status" 0
  same "$(params=$T/data/mosaics-results/params.yml param '| [.input, .outdir]')" "[\"$T/data/mosaics\",\"$T/data/mosaics-results\"]"
}

@test "earlier answers: profile and account, never folders" {
  pipeline_setup
  slurm main
  mkdir -p "${config%/*}"
  printf '%s\n' profile=slurm account=group gpu=no partition=main "input=$T/in put" "outdir=$T/x" >"$config"
  pipeline
  fails_with 2 'pipeline: --input is missing'
  pipeline --input "$T/in put"
  same "$(param '| [.account, .partition, .use_gpu]')" '["group","main",false]'
  pipeline --input "$T/in put" --profile local --account other --gpu
  same "$(param '| [.account, .partition, .use_gpu]')" '["other",null,true]'
}

@test "nextflow: on the PATH, by a module, beside the workflow" {
  pipeline_setup
  mkdir -p "$T/scripts" "$T/modules/init" "$T/module"
  mv "$T/bin/nextflow" "$T/module/"
  pipeline --input "$T/in put" --profile local
  same "$status" 1
  said 'nextflow is not on the PATH'
  cp "$T/module/nextflow" "$T/scripts/nextflow.sh"
  pipeline --input "$T/in put" --profile local
  said "$T/scripts/nextflow.sh run"
  echo "module() { PATH=\$PATH:$T/module; }" >"$T/modules/init/bash"
  MODULESHOME=$T/modules STRATA_MODULE=Nextflow pipeline --input "$T/in put" --profile local
  said "$T/module/nextflow run"
}

@test "the workflow: beside the script, by name, or nowhere" {
  pipeline_setup
  mkdir "$T/elsewhere"
  touch "$T/elsewhere/main.nf"
  pipeline --input "$T/in put" --profile local --workflow "$T/elsewhere"
  said "run $T/elsewhere/main.nf"
  STRATA_WORKFLOW=$T/elsewhere/main.nf pipeline --input "$T/in put" --profile local
  said "run $T/elsewhere/main.nf"
  pipeline --input "$T/in put" --workflow "$T/data"
  fails_with 3 "workflow $T/data: there is no main.nf in it"
  rm "$T/nextflow/main.nf"
  pipeline --input "$T/in put"
  fails_with 2 'no workflow: there is no nextflow/main.nf beside this script, and none in an image'
}

@test "programs: without Apptainer those of the image, unpacked; without an image this machine's" {
  pipeline_setup
  rm "$T/bin/apptainer"
  ln -s "$MENU_ROOT/bin/sif" "$T/bin/sif"
  pipeline --input "$T/in put" --profile local
  same "$status" 0
  local first
  first=$(cut -d: -f1 "$RECORD.path")
  cmp "$first/aip" "$MENU_ROOT/bin/aip"
  same "$(param container)" null
  said 'env PATH='
  said ':"$PATH" '
  rm "$T/strata.sif"
  mkdir "$T/nextflow/bin"
  fake ../nextflow/bin/aip true
  pipeline --input "$T/in put" --profile local
  fails_with 3 "image $T/strata.sif: no such file"
  run "$menu" pipeline --input "$T/in put" --profile local </dev/null
  same "$status" 0
  said 'the programs of this machine are used'
  same "$(head -n 1 "$RECORD.path")" "$PATH"
}
