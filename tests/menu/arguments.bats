# Choices, options and paths on the command line.
load lib

@test "every number and name is its program" {
  local n name program
  while read -r n name program; do
    for word in "$n" "$name" "$program"; do
      PROGRAMS="aip" with --dry-run "$word" --x
      same "$status" 0
      said "$T/strata.sif $program --x"
    done
  done <<'TABLE'
2 aip aip
3 resample resample
4 focal focal
5 stack stack
6 benchmark-czi benchmark_czi.sh
7 profile-czi profile_czi.sh
8 benchmark-zarr bench-zarr
9 benchmark-tiff bench-tiff
10 doctor doctor
13 stitch stitch
14 crop crop
15 preview preview
16 qc-report qc-report
17 zarr-tool zarr-tool
18 benchmark-io bench-io
19 smooth smooth
20 bench-czi bench-czi
21 view view
24 flatfield flatfield
25 beam-profile beam-profile
32 register register
35 align align
37 sif sif
38 benchmark-tile bench-tile
TABLE
}

@test "every program that strata has is a choice, under a heading, with a number of its own" {
  local name count=0
  for name in $("$MENU_ROOT/bin/strata" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][^ ]*\) .*/\1/p'); do
    with --dry-run "$name" --x
    same "$status" 0
    case $output in *"$T/strata.sif $name --x" | *"$T/strata.sif strata $name --x") ;; *) echo "$name: $output"; return 1 ;; esac
    count=$((count + 1))
  done
  [ $count -ge 33 ]
  run "$menu" --help
  local list numbers
  list=$(sed -n '/^Workflow$/,/^Options:/p' <<<"$output")
  same "$(/usr/bin/grep -c '^[A-Z]' <<<"$list")" 6
  numbers=$(sed -n 's/^  \( *[0-9][0-9]*\)  [a-z].*/\1/p' <<<"$list" | sort -n | paste -sd' ' | /usr/bin/tr -s ' ')
  same "${numbers# }" "$(/usr/bin/seq -s ' ' "$(wc -w <<<"$numbers")")"
}

@test "arguments and exit code go through" {
  export PROGRAMS='register strata'
  EXIT=3 with register a 'b c' --report '' -h
  same "$status" 3
  same "$(tail -n 6 "$RECORD" | paste -sd' ')" "register a b\\ c --report '' -h"
  EXIT=2 with 22 a b
  same "$status" 2
  same "$(tail -n 4 "$RECORD" | paste -sd' ')" 'strata start a b'
  with help start
  same "$(tail -n 3 "$RECORD" | paste -sd' ')" 'strata start --help'
  rm -r "$HOME/.cache" # what is known of the image
  PROGRAMS=aip with start
  fails_with 2 'start (strata) is not in this image'
}

@test "a program that only the image knows is run, too" {
  PROGRAMS='aip linum-aip newer' EXIT=4 with newer a b
  same "$status" 4
  same "$(tail -n 3 "$RECORD" | paste -sd' ')" 'newer a b'
  with 'linum-aip newer'
  fails_with 2 "unknown choice 'linum-aip newer'"
}

@test "without an image, the programs that are built or installed" {
  mkdir -p "$T/tree/apptainer" "$T/tree/bin"
  cp "$menu" "$MENU_ROOT"/apptainer/*_czi.sh "$T/tree/apptainer/"
  /usr/bin/cp "$MENU_ROOT/bin/strata" "$T/tree/bin/strata"
  menu=$T/tree/apptainer/bmrc_run.sh
  run "$menu" register nothing.ome.zarr b c
  same "$status" 3
  said 'the programs of this machine are used'
  said 'register: nothing.ome.zarr: '
  run "$menu" view --nonsense
  same "$status" 2
  said 'unknown flag --nonsense'
  run "$menu" start "$T/none"
  same "$status" 3
  /usr/bin/ln -s strata "$T/tree/bin/bench-czi"
  run "$menu" benchmark-czi none.czi
  same "$status" 3
  said 'bench-czi: none.czi: no such file'
  run "$menu" shell
  same "$status" 2
  said 'shell: it is one in the image'
  run "$menu" --plain <<<$'register\nnothing b c\nq\n' # no folder of data is asked for: nothing is /data
  same "$status" 0
  said "image: none: the programs in $T/tree/bin are run"
  said 'register: nothing: '
  said '(exit code 3)'
  run "$menu" --image "$T/none.sif" register a b c
  fails_with 3 "image $T/none.sif: no such file"
}

@test "view --slurm: a job runs the viewer in the image" {
  PROGRAMS=view with view results --slurm
  fails_with 1 "view --slurm: srun is not on the PATH"
  fake srun 'printf "%s\n" "$@" >"$RECORD.srun"; while [ "$1" != "$T/bin/apptainer" ]; do shift; done; exec "$@"'
  export T
  PROGRAMS=view EXIT=5 with view results --slurm --port 8080
  same "$status" 5
  same "$(head -n 5 "$RECORD.srun" | paste -sd' ')" '--job-name=view --unbuffered --ntasks=1 --cpus-per-task=2 --mem=1G'
  same "$(tail -n 4 "$RECORD" | paste -sd' ')" 'view results --port 8080'
  PROGRAMS=view SLURM_JOB_ID=7 with view results --slurm
  same "$status" 0
  same "$(tail -n 2 "$RECORD" | paste -sd' ')" 'view results'
  mkdir -p "$(/usr/bin/dirname "$config")"
  echo partition=long >"$config"
  with --dry-run view results --slurm
  said '--mem=1G --partition long '
  SLURM_PARTITION=short with --dry-run view results --slurm
  unsaid '--partition'
}

@test "a program gets its arguments as they are, and its exit code is ours" {
  EXIT=3 with stack --help 'a b' '' "it's" '$(touch x)' --image other
  same "$status" 3
  given exec --bind "$T/data:/data" --bind "$T/data:$T/data" --bind "$T/here:$T/here" --pwd "$T/here" "$T/strata.sif" \
    stack --help 'a b' '' "it's" '$(touch x)' --image other
}

@test "signals reach the program: it takes the menu's place" {
  fake apptainer 'case ${!#} in *"echo programs: *") echo "programs: aip" ;; *) echo $$ >"$RECORD"; exec sleep 60 ;; esac'
  "$menu" --image "$T/strata.sif" aip 3>&- &
  for ((i = 0; i < 100; i++)); do [ -s "$RECORD" ] && break; sleep 0.1; done
  same "$(cat "$RECORD")" $!
  kill $!
  wait $! || same $? 143
}

@test "shell: bash, or the command that is given" {
  with 11
  same "$(tail -n 2 "$RECORD" | paste -sd' ')" '/bin/bash --norc'
  with shell zarr-tool info 'a b'
  same "$(tail -n 3 "$RECORD" | paste -sd' ')" 'zarr-tool info a\ b'
}

@test "help: ours, of a program, of the pipeline" {
  run "$menu" --help
  same "$status" 0
  said '18  benchmark-io'
  for option in --image --data --scratch --nv --no-nv --module --runtime --dry-run --yes --plain --config; do said "$option"; done
  run "$menu" 12
  said '18  benchmark-io'
  with help 5
  same "$(tail -n 2 "$RECORD" | paste -sd' ')" 'stack --help'
  run "$menu" pipeline --help
  said --gpu_partition
}

@test "the version is the project's" {
  run "$menu" --version
  same "$output" "bmrc_run.sh $(sed -n 's/^## \[\{0,1\}\([0-9][^] ]*\).*/\1/p' "$MENU_ROOT/CHANGELOG.md" | head -n 1)"
}

@test "an unknown choice, an unknown option: the nearest is named" {
  with stich in out
  fails_with 2 "unknown choice 'stich' (nearest: stitch): want a number from 1 to 39 or a name"
  with 40
  fails_with 2 "unknown choice '40'"
  unsaid nearest
  run "$menu" --imege x aip
  fails_with 2 'unknown option --imege (nearest: --image)'
  run "$menu" --data
  fails_with 2 '--data needs a value'
}

@test "a choice whose tool is not in the image says so, and what is in it" {
  PROGRAMS='aip stack' with benchmark-czi
  fails_with 2 "benchmark-czi (benchmark_czi.sh) is not in this image, $T/strata.sif, which has: aip stack"
  PROGRAMS='aip stack' with 13
  fails_with 2 "stitch is not in this image"
}

@test "the image is asked once for its programs, again when it is another one" {
  with aip; with aip; with stack
  same "$(wc -l <"$RECORD.calls")" 4
  cp --remove-destination "$T/strata.sif" "$T/other"; mv "$T/other" "$T/strata.sif"
  /usr/bin/touch -d 2001-01-01 "$T/strata.sif"
  PROGRAMS=aip with stack
  fails_with 2 'stack is not in this image'
}

@test "data: every name that a folder may have" {
  local name
  for name in 'with space' "quo'te" 'dou"ble' 'com,ma' 'co:lon' 'back\slash' 'dollar$(touch x)`' 'ümlaut' '-dash' 'a=b' 'star*?[x]' 'end ' 'car^et' 'a:b,"c" d'; do
    mkdir "$T/$name"
    run "$menu" --image "$T/strata.sif" --data "$T/$name" aip
    same "$status" 0
    given exec --mount "$(mount_text "$T/$name" /data)" --mount "$(mount_text "$T/$name" "$T/$name")" \
      --bind "$T/here:$T/here" --pwd "$T/here" "$T/strata.sif" aip || {
      [ "$name" = -dash ] || [ "$name" = a=b ] || return 1 # these need no quotes
      given exec --bind "$T/$name:/data" --bind "$T/$name:$T/$name" --bind "$T/here:$T/here" --pwd "$T/here" "$T/strata.sif" aip
    }
  done
  [ ! -e x ]
}

@test "data: option, variable, earlier answer, this folder" {
  mkdir "$T/option" "$T/variable" "$T/answer"
  run "$menu" --image "$T/strata.sif" aip
  said 'ran'
  same "$(head -n 3 "$RECORD" | tail -n 1)" "$T/here:/data"
  mkdir -p "${config%/*}"
  echo "data=$T/answer" >"$config"
  run "$menu" --image "$T/strata.sif" aip
  same "$(head -n 3 "$RECORD" | tail -n 1)" "$T/answer:/data"
  DATA_DIR=$T/variable run "$menu" --image "$T/strata.sif" aip
  same "$(head -n 3 "$RECORD" | tail -n 1)" "$T/variable:/data"
  DATA_DIR=$T/variable run "$menu" --image "$T/strata.sif" "--data=../option/" aip
  same "$(head -n 3 "$RECORD" | tail -n 1)" "$T/option:/data"
}

@test "data: missing, a file, no permission" {
  DATA_DIR=$T/nothing run "$menu" --image "$T/strata.sif" aip
  fails_with 3 "data folder (DATA_DIR) $T/nothing: no such folder"
  DATA_DIR=$T/strata.sif run "$menu" --image "$T/strata.sif" aip
  fails_with 3 "$T/strata.sif: not a folder"
  mkdir -p "$T/well/group/data"
  /usr/bin/chmod 700 "$T/well/group"
  /usr/bin/chmod 777 "$T/home"
  other_user "$menu" --image "$T/strata.sif" --data "$T/well/group/data" aip
  if [ "$(/usr/bin/id -u)" = 0 ]; then
    fails_with 3 "data folder (DATA_DIR) $T/well/group/data: no permission to look into $T/well/group (drwx------ root:root)"
    other_user "$menu" --image "$T/strata.sif" --data "$T/well/group" aip
    fails_with 3 "data folder (DATA_DIR) $T/well/group: no permission to read it (drwx------ root:root)"
  else
    /usr/bin/chmod 000 "$T/well/group"
    other_user "$menu" --image "$T/strata.sif" --data "$T/well/group" aip
    fails_with 3 "no permission to read it"
    /usr/bin/chmod 700 "$T/well/group"
  fi
}

@test "system folders are not laid over the image's" {
  run "$menu" --image "$T/strata.sif" --data /usr/share aip
  given exec --bind /usr/share:/data --bind "$T/here:$T/here" --pwd "$T/here" "$T/strata.sif" aip
  cd /etc
  run "$menu" --image "$T/strata.sif" --data "$T/data" aip
  given exec --bind "$T/data:/data" --bind "$T/data:$T/data" "$T/strata.sif" aip
}

@test "scratch: option, SCRATCH_DIR, TMPDIR if it is there" {
  mkdir "$T/fast disk" "$T/tmpdir"
  SCRATCH_DIR="$T/fast disk" TMPDIR=$T/tmpdir with aip
  said ran
  /usr/bin/grep -qxF "$(printf %q "$(mount_text "$T/fast disk" /scratch)")" "$RECORD"
  TMPDIR=$T/tmpdir with aip
  /usr/bin/grep -qxF "$T/tmpdir:/scratch" "$RECORD"
  TMPDIR=$T/gone with aip
  same "$status" 0
  no /usr/bin/grep -q scratch "$RECORD"
  with --scratch "$T/gone" aip
  fails_with 3 "scratch folder (SCRATCH_DIR) $T/gone: no such folder"
}

@test "the GPU's driver: when a GPU is to be seen, or as it is said" {
  has_nv() { with "$@" aip && /usr/bin/grep -qx -- --nv "$RECORD"; }
  no has_nv
  has_nv --nv
  STRATA_NV=on has_nv
  CUDA_VISIBLE_DEVICES=0,1 has_nv
  CUDA_VISIBLE_DEVICES=0,1 no has_nv --no-nv
  CUDA_VISIBLE_DEVICES=-1 no has_nv
  fake nvidia-smi true
  no has_nv
  unset CUDA_VISIBLE_DEVICES
  has_nv
  STRATA_NV=maybe with aip
  said "STRATA_NV is 'maybe': want on, off or auto"
  same "$status" 2
}

@test "variables are let in by name, also where the environment is emptied" {
  CUDA_VISIBLE_DEVICES=0,1 STRATA_GDS_THREADS=4 KVIKIO_NTHREADS='8 9' OTHER=1 with aip
  same "$(cat "$RECORD.env")" $'APPTAINERENV_CUDA_VISIBLE_DEVICES=0,1\nAPPTAINERENV_KVIKIO_NTHREADS=8 9\nAPPTAINERENV_STRATA_GDS_THREADS=4'
  mv "$T/bin/apptainer" "$T/bin/singularity"
  with aip
  same "$(cat "$RECORD.env")" 'SINGULARITYENV_CUDA_VISIBLE_DEVICES='
}

@test "the runtime: apptainer before singularity before sif; a module; a name" {
  cp "$T/bin/apptainer" "$T/bin/singularity"
  with aip; said ran
  same "$(tail -n 1 "$RECORD.calls")" "$T/bin/apptainer"
  with --runtime singularity aip
  same "$(tail -n 1 "$RECORD.calls")" "$T/bin/singularity"
  rm "$T/bin/apptainer" "$T/bin/singularity"
  cp "$MENU_ROOT/tests/menu/fake-runtime" "$T/bin/sif"
  with aip
  same "$(head -n 1 "$RECORD")" run-root
  mkdir -p "$T/modules/init" "$T/module"
  cp "$T/bin/sif" "$T/module/apptainer"
  echo 'module() { [ "$*" = "load Apptainer/1.3 More" ] && PATH=$PATH:$UNSET_'"$T/module; }" >"$T/modules/init/bash"
  MODULESHOME=$T/modules STRATA_MODULE='Apptainer/1.3 More' with aip
  same "$status" 0
  same "$(tail -n 1 "$RECORD.calls")" "$T/module/apptainer"
  MODULESHOME=$T/modules with --module none aip
  said 'module none could not be loaded'
  with --module none aip
  rm "$T/bin/sif"
  with aip
  fails_with 1 'neither apptainer, singularity nor sif is on the PATH'
  with --runtime podman aip
  fails_with 2 'runtime podman: want apptainer, singularity or sif'
}

@test "the image: option, variable, answer, beside the script, here" {
  mkdir -p "${config%/*}" build "$T/beside"
  cp "$menu" "$T/beside/"
  used() { run "$@" --dry-run aip; case $output in *" $want aip") ;; *) echo "$output"; return 1 ;; esac; }
  ln "$T/strata.sif" build/strata.sif
  want=$PWD/build/strata.sif used "$menu"
  ln "$T/strata.sif" strata.sif
  want=$PWD/strata.sif used "$menu"
  ln "$T/strata.sif" "$T/beside/strata.sif"
  want=$T/beside/strata.sif used "$T/beside/bmrc_run.sh"
  ln "$T/strata.sif" "$T/answer.sif"
  echo "image=$T/answer.sif" >"$config"
  want=$T/answer.sif used "$menu"
  STRATA_IMAGE=$PWD/build want=$PWD/build/strata.sif used "$menu"
  STRATA_IMAGE=$PWD/nothing want=$T/strata.sif used "$menu" --image ../strata.sif
  want=docker://example.org/strata used "$menu" --image docker://example.org/strata
}

@test "the image: none, missing, cut off, not one, not readable" {
  run "$menu" aip
  fails_with 2 'no image: there is no strata.sif beside this script or in this folder'
  run "$menu" --image "$T/no.sif" aip
  fails_with 3 "image $T/no.sif: no such file"
  head -c 100000 "$T/strata.sif" >"$T/cut.sif"
  run "$menu" --image "$T/cut.sif" aip
  fails_with 3 "image $T/cut.sif: not a whole image: 100000 bytes of $(stat -c %s "$T/strata.sif") are there"
  head -c 100 "$T/strata.sif" >"$T/cut.sif"
  run "$menu" --image "$T/cut.sif" aip
  fails_with 3 "not an image, or not a whole one"
  head -c 5000 /dev/zero >"$T/zero.sif"
  run "$menu" --image "$T/zero.sif" aip
  fails_with 3 'it has no SIF header'
  run "$menu" --image "$T/data" aip
  fails_with 3 'a folder that is no unpacked image'
  cp "$T/strata.sif" "$T/closed.sif"
  /usr/bin/chmod 000 "$T/closed.sif"
  other_user "$menu" --image "$T/closed.sif" aip
  fails_with 3 "image $T/closed.sif: no permission to read it (----------"
}

@test "what the runtime says goes through, with a hint and its failure" {
  FAULT='FATAL: container creation failed: failed to create user namespace: not permitted' with aip
  same "$status" 1
  said 'FATAL: container creation failed: failed to create user namespace'
  said "image $T/strata.sif: apptainer could not run anything in it (exit code 255)"
  said 'users may not make namespaces on this machine'
  FAULT='FATAL: squashfuse_ll: failed to mount' with aip
  said 'copy it to a local disk'
  FAULT='something else' with aip
  same "${#lines[@]}" 2
  with aip # is asked again
  same "$status" 0
}

@test "a dry run prints what a shell can take, and runs nothing" {
  mkdir "$T/a 'b'"
  run "$menu" --image "$T/strata.sif" --data "$T/a 'b'" -n aip 'x y' '$z'
  [ ! -e "$RECORD" ]
  [ ! -e "$log" ]
  eval "$output"
  given exec --mount "$(mount_text "$T/a 'b'" /data)" --mount "$(mount_text "$T/a 'b'" "$T/a 'b'")" \
    --bind "$T/here:$T/here" --pwd "$T/here" "$T/strata.sif" aip 'x y' '$z'
}

@test "the log has date, folder and command, and can be pasted" {
  mkdir 'a "b"' && cd 'a "b"'
  CUDA_VISIBLE_DEVICES=0 with aip 'x y'
  with stack
  same "$(/usr/bin/grep -cE '^# 20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[+-][0-9]{4} ' "$log")" 2
  cp "$RECORD" "$T/second"
  cd / && rm "$RECORD"
  bash "$log" >/dev/null
  same "$(cat "$RECORD")" "$(cat "$T/second")"
  same "$(cat "$RECORD.env")" "APPTAINERENV_CUDA_VISIBLE_DEVICES="
}

@test "a home that cannot be written is no hindrance" {
  mkdir "$T/full"
  echo x >"$T/full/.local"; echo x >"$T/full/.cache"
  HOME=$T/full with aip
  same "$status" 0
  said 'commands are not logged'
  said 'ran'
}

@test "settings: read as they are, wrong ones are named" {
  mkdir -p "${config%/*}" "$T/\$(touch evil) 'q' \"d\" \\ =#"
  printf '# mine\ndata=%s\ndatta=x\nnonsense\nargs_aip=a\n' "$T/\$(touch evil) 'q' \"d\" \\ =#" >"$config"
  run "$menu" --image "$T/strata.sif" aip
  same "$status" 0
  said "bmrc_run.sh: $config, line 3: 'datta' is no setting (nearest: data): it is left out"
  said "line 4: 'nonsense' is no setting"
  /usr/bin/grep -qxF -- "$(printf %q "$(mount_text "$T/\$(touch evil) 'q' \"d\" \\ =#" /data)")" "$RECORD"
  [ ! -e evil ]
  run "$menu" --config "$T/none.conf" --image "$T/strata.sif" aip
  unsaid 'no setting'
  /usr/bin/grep -qxF -- "$T/here:/data" "$RECORD"
}

@test "sif: names that --bind cannot have are led to by a link" {
  rm "$T/bin/apptainer"
  cp "$MENU_ROOT/tests/menu/fake-runtime" "$T/bin/sif"
  local link name
  for name in a:b a,b; do
    mkdir "$T/$name"
    run "$menu" --image "$T/strata.sif" --data "$T/$name" aip
    same "$status" 0
    link=$(sed -n 3p "$RECORD")
    same "${link#*:}" /data
    same "$(readlink "${link%%:*}")" "$T/$name"
    same "$(wc -l <"$RECORD")" 5
  done
  mkdir "$T/a 'b' c " "$T/plain"
  run "$menu" --image "$T/strata.sif" --data "$T/a 'b' c " aip
  given run-root --bind "$T/a 'b' c :/data" "$T/strata.sif" aip
  XDG_CACHE_HOME=$T/a:b run "$menu" --image "$T/strata.sif" --data "$T/a,b" aip
  fails_with 1 'cannot be given a name with a comma or colon'
  run "$menu" --image "$T/strata.sif" --data "$T/plain" --nv aip x
  given run-root --nv --bind "$T/plain:/data" --bind "$T/plain:$T/plain" "$T/strata.sif" aip x
  run "$menu" --image docker://example.org/strata aip
  fails_with 2 'sif takes files only'
}
