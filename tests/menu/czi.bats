# The scripts that ask for a CZI file, outside of a container.
load lib

@test "in a terminal: the file is found in this folder or DATA_DIR, the results come to this folder" {
  cp "$MENU_TMP/scan/scan_z00.czi" "$T/data/scan.CZI"
  export DATA_DIR=$T/data
  menu=$MENU_ROOT/apptainer/benchmark_czi.sh
  ROWS_=60 COLUMNS_=150 screen
  see "CZI file in your data folder (q: leave): $T/data/scan.CZI"
  keys C-u
  text "$T/data"
  keys Enter
  see "$T/data: is a folder (must be a CZI file)"
  keys Enter
  see '2) medium'
  keys C-u
  text medium
  keys Enter
  see "bench-czi run --max_tiles 500 -- $T/data/scan.CZI"
  see 'batches of 100'
  see 'results: benchmark_results_20'
  see 'left with 0'
  set -- benchmark_results_20*.json
  [ -s "$1" ]
}

@test "in a terminal: q leaves, also behind a default; nothing is measured" {
  cp "$MENU_TMP/scan/scan_z00.czi" "$T/here/"
  menu=$MENU_ROOT/apptainer/benchmark_czi.sh
  screen
  see "scan_z00.czi"
  text q
  keys Enter
  see 'left with 0'
  screen
  see "scan_z00.czi"
  keys Enter
  see '1) quick'
  see 'choice (q: leave): 1'
  text q
  keys Enter
  see 'left with 0'
  no ls benchmark_results_20*
}

@test "in a terminal: nothing is found; a path is typed, or one leaves" {
  cp "$MENU_TMP/scan/scan_z00.czi" "$HOME/"
  menu=$MENU_ROOT/apptainer/profile_czi.sh
  ROWS_=60 COLUMNS_=150 screen
  see 'CZI file in your data folder (q: leave):'
  keys Enter
  see "no CZI file was found in $T/here: give its path"
  text '~/scan_z00.czi'
  keys Enter
  see '1) quick'
  keys Enter
  see "bench-czi profile --max_tiles 50 -- $HOME/scan_z00.czi"
  see 'every 10th tile'
  see 'left with 0'
}

@test "without a terminal the answers are lines, and what they lack the defaults" {
  cp "$MENU_TMP/scan/scan_z00.czi" "$T/here/"
  run "$MENU_ROOT/apptainer/profile_czi.sh" <<<$'\n3'
  same "$status" 0
  said "bench-czi profile --max_tiles 200 -- $T/here/scan_z00.czi"
  run "$MENU_ROOT/apptainer/benchmark_czi.sh" </dev/null
  same "$status" 0
  said 'run --max_tiles 100 --quick -- '
  run "$MENU_ROOT/apptainer/benchmark_czi.sh" <<<$'\nmuch'
  same "$status" 2
  rm scan_z00.czi
  run "$MENU_ROOT/apptainer/benchmark_czi.sh" </dev/null
  same "$status" 3
  said "no CZI file to read in $T/here"
  run "$MENU_ROOT/apptainer/benchmark_czi.sh" <<<q
  same "$status" 0
}

@test "arguments go to bench-czi as they are" {
  run "$MENU_ROOT/apptainer/profile_czi.sh" --nonsense
  same "$status" 2
  said 'unknown flag --nonsense'
  run "$MENU_ROOT/apptainer/benchmark_czi.sh" 'none at all.czi'
  same "$status" 3
  said 'none at all.czi: no such file'
}
