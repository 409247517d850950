# A real image, run by sif run-root.
load lib

real() {
  export LC_ALL=C # the image has no other locale
  rm "$T/bin/apptainer"
  ln -s "$MENU_ROOT/bin/sif" "$T/bin/sif"
  /usr/bin/unshare --user --map-root-user --mount /bin/true 2>/dev/null || skip 'users may not make namespaces here'
}

@test "programs run in it, with their exit codes; those that it lacks are named" {
  real
  with aip --version
  same "$status" 0
  same "$output" "$("$MENU_ROOT/bin/aip" --version)"
  with 5 --nonsense
  same "$status" 2
  said 'unknown flag --nonsense'
  with zarr-tool
  fails_with 2 "zarr-tool is not in this image, $T/strata.sif, which has: aip bench-czi benchmark_czi.sh profile_czi.sh stack"
}

@test "data and scratch are where they should be, whatever they are called" {
  real
  local name
  for name in data "it's a \"b\" \\ \$(touch evil) " "it's :a, \"b\""; do
    mkdir -p "$T/$name" "$T/scratch, $name"
    echo here >"$T/$name/file"
    run "$menu" --image "$T/strata.sif" --data "$T/$name" --scratch "$T/scratch, $name" \
      shell bash -c 'read -r x </data/file && echo "$x $1 $PWD $STRATA_X $CUDA_VISIBLE_DEVICES" && echo new >/scratch/out' - 'a  b'
    same "$status" 0
    same "$output" "here a  b $T/here  "
    same "$(cat "$T/scratch, $name/out")" new
  done
  CUDA_VISIBLE_DEVICES=1,2 STRATA_X='q "r"' with --no-nv shell bash -c 'echo "$STRATA_X $CUDA_VISIBLE_DEVICES"; read -r x <'"'$T/data/file'"' && echo "$x"'
  same "$output" $'q "r" 1,2\nhere'
}

@test "an image that cannot be unpacked" {
  real
  cp "$T/strata.sif" "$T/broken.sif"
  # past the header: the table of what is in it
  printf 'x%.0s' {1..4000} | /usr/bin/dd of="$T/broken.sif" bs=1 seek=4096 conv=notrunc status=none
  run "$menu" --image "$T/broken.sif" aip
  same "$status" 1
  said "image $T/broken.sif: sif could not run anything in it"
}

@test "where users may not make namespaces" {
  real
  fake sif "exec /usr/bin/unshare --user --map-root-user /bin/bash -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec \"\$@\"' - '$MENU_ROOT/bin/sif' \"\$@\""
  with aip --version
  same "$status" 1
  said 'no user namespace'
  said 'users may not make namespaces on this machine'
}

@test "the pipeline with nothing but the script, sif and the image" {
  real
  mkdir "$T/mosaics"
  fake nextflow 'printf "%q\n" "$@" >"$RECORD"'
  run "$menu" --image "$T/strata.sif" pipeline --input "$T/mosaics" --profile local </dev/null
  same "$status" 0
  local main
  main=$(sed -n 2p "$RECORD")
  same "$main" "$(echo "$HOME"/.cache/strata/bmrc_run/workflow/*/nextflow/main.nf)"
  cmp "$main" "$MENU_ROOT/nextflow/main.nf"
  rm "$T/bin/nextflow"
  run "$menu" --image "$T/strata.sif" --dry-run pipeline --input "$T/mosaics" --profile local
  said "${main%/nextflow/main.nf}/scripts/nextflow.sh run $main"
}

@test "in a terminal: a shell in the image, and back" {
  real
  screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'choice'
  text 11
  keys Enter
  see 'bash-'
  text 'echo in /usr/local/bin/*; exit 5'
  keys Enter
  see 'in /usr/local/bin/aip /usr/local/bin/bench-czi /usr/local/bin/benchmark_czi.sh'
  see '(exit code 5)'
}

@test "in a terminal: 6 and 7 ask, measure a scan in /data, and leave the results beside it" {
  real
  mkdir "$T/data/a folder"
  cp "$MENU_TMP/scan/scan_z00.czi" "$T/data/a folder/my scan.czi"
  ROWS_=60 COLUMNS_=150 screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'choice'
  text 6
  keys Enter
  see 'CZI file in your data folder, which this container has as /data (q: leave): /data/a folder/my scan.czi'
  keys C-u
  text nothing.czi
  keys Enter
  see 'nothing.czi: no such file in your data folder, which this container has as /data'
  keys C-u
  text 'a folder/my scan.czi'
  keys Enter
  see '1) quick'
  keys C-u
  text 4
  keys Enter
  see "'4' is no choice: want a number from 1 to 3, or a name"
  keys Enter
  see '+ /usr/local/bin/bench-czi run --max_tiles 100 --quick -- /data/a\ folder/my\ scan.czi'
  see 'results: /data/benchmark_results_20'
  see 'choice (s: settings, q: quit)'
  text 7
  keys Enter
  see 'CZI file'
  keys Enter
  see '3) detailed'
  keys C-u
  text standard
  keys Enter
  see '+ /usr/local/bin/bench-czi profile --max_tiles 100 -- /data/a\ folder/my\ scan.czi'
  see 'read: decoding'
  see 'the slowest tiles'
  see 'choice (s: settings, q: quit)'
  text q
  keys Enter
  see 'left with 0'
  set -- "$T/data"/benchmark_results_20*.json
  [ -s "$1" ]
}

@test "6 and 7 with arguments ask nothing" {
  real
  cp "$MENU_TMP/scan/scan_z00.czi" "$T/data/"
  with profile-czi /data/scan_z00.czi --max-tiles 3 -q
  same "$status" 0
  said '12 tiles of level 0'
  said '3 read'
  with 6 /data/none.czi
  same "$status" 3
  said 'bench-czi: /data/none.czi: no such file'
}
