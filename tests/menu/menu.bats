# The menu in a terminal, by whiptail and without, as a user drives it.
load lib

# choose NUMBER: with the cursor, as whiptail does not jump to numbers. It stands on 1, below the first heading; the help has the same lines.
choose() {
  local first
  see pipeline
  while read -r first _; do
    [ "$first" != "$1" ] || break
    keys Down
  done < <("$menu" --image "$T/strata.sif" --help | sed '1,/^Workflow$/d; /^$/d; /^Options:/,$d')
  keys Enter
}
all="strata $(cd "$MENU_ROOT/bin" && echo *) benchmark_czi.sh profile_czi.sh"
# unseen TEXT: it is not on the screen.
unseen() { case $(shown) in *"$1"*) echo "'$1' is on the screen:"; shown; return 1 ;; esac; }

@test "whiptail: all choices, image and data" {
  export PROGRAMS=$all
  ROWS_=60 COLUMNS_=80 screen --image "$T/strata.sif" --data "$T/data"
  see "│ image: $T/strata.sif"
  see "│ data:  $T/data"
  see '│     Workflow '
  see '│     Volumes, from slices '
  /usr/bin/grep -E '^  [ 0-9][0-9]  ' <("$menu" --help) >"$T/lines"
  [ "$(wc -l <"$T/lines")" -ge 38 ]
  local number line
  while read -r number line; do see "$(printf '│  %-2s   %s ' "$number" "$line")"; done <"$T/lines"
  see '│  q    quit '
  keys q Enter
  see 'left with 0'
}

@test "whiptail: Quit and Escape leave" {
  screen
  see '<Quit>'
  keys Tab Tab Enter
  see 'left with 0'
}

@test "whiptail: a tool, its arguments, back to the menu; answers stay" {
  mkdir "$T/my \$(touch evil) 'data'"
  screen --image "$T/strata.sif"
  choose 2
  see 'Folder of your data, which programs see as /data'
  keys C-u
  text "$T/nothing"
  keys Enter
  see "$T/nothing: no such folder"
  keys Enter
  see 'Folder of your data'
  keys C-u
  text "$T/my \$(touch evil) 'data'"
  keys Enter
  see 'aip: arguments (none: its help) (q: back)'
  text "/data/in.zarr 'a b' \"c\" \$(touch evil) ~/out"
  keys Enter
  see 'Enter: back to the menu'
  same "$(tail -n 7 "$RECORD" | paste -sd' ')" "aip /data/in.zarr a\\ b c \\\$\\(touch evil\\) $HOME/out"
  same "$(/usr/bin/grep -c evil\' "$log")" 0
  keys Enter
  see '<Quit>'
  choose 2
  see "/data/in.zarr 'a b' \"c\" \$(touch evil) ~/out"
  rm "$RECORD"
  keys Enter
  for ((i = 0; i < 100; i++)); do [ -s "$RECORD" ] && break; sleep 0.1; done # the screen may still have what it said before
  same "$(tail -n 7 "$RECORD" | paste -sd' ')" "aip /data/in.zarr a\\ b c \\\$\\(touch evil\\) $HOME/out"
  /usr/bin/grep -qxF "data=$T/my \$(touch evil) 'data'" "$config"
  /usr/bin/grep -qxF "args_aip=/data/in.zarr 'a b' \"c\" \$(touch evil) ~/out" "$config"
  [ ! -e evil ]
}

@test "whiptail: an open quote is said; Cancel goes back" {
  screen --image "$T/strata.sif" --data "$T/data"
  choose 5
  see 'stack: arguments'
  text "it's"
  keys Enter
  see "unclosed quote: it's"
  keys Enter
  see 'stack: arguments'
  keys Tab Tab Enter
  see '<Quit>'
  [ "$(tail -n 1 "$RECORD")" != "it\\'s" ]
}

@test "whiptail: an earlier answer is not taken for a flag, nor are escapes" {
  mkdir -p "${config%/*}"
  echo 'args_aip=--png "a\nb.png" %s' >"$config"
  screen --image "$T/strata.sif" --data "$T/data"
  choose 2
  see '--png "a\nb.png" %s'
  keys Enter
  see 'Enter: back to the menu'
  same "$(tail -n 3 "$RECORD" | paste -sd' ')" '--png a\\nb.png %s'
}

@test "whiptail: without arguments its help, then again" {
  screen --image "$T/strata.sif" --data "$T/data"
  choose 5
  see 'stack: arguments'
  keys Enter
  see 'Enter: back to the arguments'
  see 'ran stack --help'
  keys Enter
  see 'stack: arguments'
}

@test "whiptail: what asks by itself is run without a question but for the data" {
  export PROGRAMS='benchmark_czi.sh profile_czi.sh'
  screen --image "$T/strata.sif"
  choose 7
  see 'Folder of your data, which programs see as /data'
  keys C-u
  text "$T/data"
  keys Enter
  see "ran $T/strata.sif profile_czi.sh"
  see 'Enter: back to the menu'
  keys Enter
  see '<Quit>'
  choose 6
  see "ran $T/strata.sif benchmark_czi.sh"
}

@test "help that is longer than the screen is paged" {
  fake less 'echo "paged by less $*"; cat >/dev/null'
  screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'choice'
  text 12
  keys Enter
  see 'paged by less -FRX'
}

@test "whiptail: a failure does not end the menu, nor does an interrupt" {
  fake apptainer 'case ${!#} in *"echo programs: *") echo "programs: doctor" ;; *) echo "it runs"; sleep 60 ;; esac'
  screen --image "$T/strata.sif" --data "$T/data"
  choose 10
  see 'it runs'
  keys C-c
  see '(exit code 130)'
  keys Enter
  see '<Quit>'
}

@test "whiptail: a small terminal gets the plain menu" {
  ROWS_=18 screen
  see 'choice (s: settings, q: quit):'
}

@test "what the image does not hold is not offered" {
  screen --image "$T/strata.sif" --data "$T/data"
  see '│  5    stack '
  see '│  13   stitch '
  unseen benchmark
  unseen focal
  unseen crop
  unseen Benchmarks
  keys q Enter
  see 'left with 0'
  with --help
  said ' 5  stack'
  unsaid benchmark-czi
  cp "$T/strata.sif" "$T/other.sif" # nobody has asked this one yet
  run "$menu" --image "$T/other.sif" --help
  said ' 6  benchmark-czi'
}

@test "while it is not known what the image holds, everything is offered" {
  export FAULT='FATAL: no namespace'
  screen --plain --image "$T/strata.sif" --data "$T/data"
  see ' 6 benchmark-czi'
  see '18 benchmark-io'
  text benchmark-czi
  keys Enter
  see 'apptainer could not run anything in it'
}

@test "plain: all choices, by number and by name" {
  local line
  export STRATA_MENU=plain PROGRAMS=$all
  ROWS_=60 screen --image "$T/strata.sif" --data "$T/data"
  see "image: $T/strata.sif"
  see "data:  $T/data"
  /usr/bin/grep -E '^  [ 0-9][0-9]  ' <("$menu" --help) >"$T/lines"
  [ "$(wc -l <"$T/lines")" -ge 38 ]
  while IFS= read -r line; do see "${line#  }"; done <"$T/lines"
  text 5
  keys Enter
  see 'stack: arguments (none: its help) (q: back):'
  text "in shifts 'out put'"
  keys Enter
  see 'ran shifts out put'
  same "$(tail -n 4 "$RECORD" | paste -sd' ')" 'stack in shifts out\ put'
  text stich
  keys Enter
  see "unknown choice 'stich' (nearest: stitch)"
  text q
  keys Enter
  see 'left with 0'
}

@test "plain: a screen that the list does not fit on has the names" {
  export PROGRAMS=$all
  ROWS_=24 COLUMNS_=80 screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'help: what each of them does'
  see "image: $T/strata.sif"
  local first rest
  while read -r first rest; do
    case $first in [0-9]*) see "  $first ${rest%% *}" ;; *) see "${first%,}" ;; esac
  done < <("$menu" --help | sed '/^CHOICE/,/^$/d; 1,/^$/d; /^$/d; /^Options:/,$d')
  unseen 'stitch the tiles'
  text register
  keys Enter
  see 'register: arguments'
}

@test "whiptail: a heading is no choice" {
  screen --image "$T/strata.sif" --data "$T/data"
  choose Stages,
  see '<Quit>'
  unseen 'exit code'
  choose 2
  see 'aip: arguments'
}

@test "plain: where there is no whiptail" {
  cp -a "$MENU_TMP/tools" "$T/poor"
  rm "$T/poor/whiptail"
  PATH=$T/bin:$T/poor screen
  see 'choice (s: settings, q: quit):'
}

@test "plain: settings are remembered and used" {
  mkdir "$T/new data"
  screen --plain
  see 'image: none'
  text s
  keys Enter
  see 'Image file (q: back):'
  keys C-u
  text "$T/data"
  keys Enter
  see 'a folder that is no unpacked image'
  keys C-u
  text "$T/strata.sif"
  keys Enter
  see 'Folder of your data'
  keys C-u
  text "$T/new data"
  keys Enter
  see 'Folder for temporary files'
  keys Enter
  see 'Make the GPU driver available in the image: auto, on or off (q: back): auto'
  keys C-u
  text on
  keys Enter
  see 'Environment modules'
  keys Enter
  see "image: $T/strata.sif"
  see "data:  $T/new data"
  text 10
  keys Enter
  see 'ran'
  same "$(head -n 3 "$RECORD" | paste -sd' ')" "exec --nv --mount"
  same "$(cat "$config")" "image=$T/strata.sif
data=$T/new data
nv=on"
}

@test "plain: the Tab key completes paths, with spaces and quotes in them" {
  mkdir "$T/my 'da ta', x" "$T/my 'da ta', x/mosaics"
  screen --plain --image "$T/strata.sif"
  see 'data:  not set yet'
  text 2
  keys Enter
  see 'Folder of your data'
  keys C-u
  text "$T/my"
  keys Tab
  see ' x/'
  keys Enter
  see 'aip: arguments'
  text "$T/my"
  keys Tab
  see 'back): '"$(printf %q "$T/my 'da ta', x/")"
  text 'mosaics out'
  keys Enter
  see 'ran'
  same "$(tail -n 2 "$RECORD" | head -n 1)" "$(printf %q "$T/my 'da ta', x/mosaics")"
  /usr/bin/grep -qxF "data=$T/my 'da ta', x" "$config"
  same "$(tail -n 1 "$RECORD")" out
}

@test "plain: end of input leaves" {
  run "$menu" --plain </dev/null
  same "$status" 0
  run "$menu" --image "$T/strata.sif" --data "$T/data" <<<$'5\n'
  same "$status" 0
  run "$menu" --image "$T/strata.sif" --data "$T/data" <<<$'10\nq\n'
  same "$status" 0
  said ran
}

pipeline_screen() {
  mkdir -p "$T/lone" "$T/nextflow" "$T/mo saics"
  cp "$menu" "$T/lone/"
  menu=$T/lone/bmrc_run.sh
  touch "$T/nextflow/main.nf"
  fake nextflow 'printf "%q\n" "$@" >"$RECORD"; touch "$RECORD.flow"; echo "it flows"'
  fake sbatch true
  fake sinfo 'echo main; echo gpu'
  screen --image "$T/strata.sif" --data "$T/data" "$@"
}

@test "whiptail: the pipeline asks, writes params.yml, shows the command, runs it" {
  pipeline_screen
  choose 1
  see 'Input: folder of mosaics'
  see "$T/data"
  keys C-u
  text "$T/mo saics"
  keys Enter
  see 'Output: folder for the results'
  see "$T/mo saics-results"
  keys Enter
  see 'Profile: local, slurm or bmrc'
  keys C-u
  text slrum
  keys Enter
  see "'slrum' is no profile (nearest: slurm)"
  keys Enter
  see 'Profile: local'
  unseen slrum
  see 'slurm__'
  keys Enter
  see 'Use GPUs: yes or no'
  keys C-u
  text yes
  keys Enter
  see 'SLURM account'
  text group
  keys Enter
  see 'SLURM partition of gpu main (empty: the default one)'
  text nain
  keys Enter
  see 'partition nain does not exist (nearest: main): this cluster has'
  keys Enter
  see 'SLURM partition of gpu main (empty'
  unseen nain
  text main
  keys Enter
  see 'SLURM partition of the GPUs of gpu main (empty'
  text gpu
  keys Enter
  see 'Run it? [y/N]'
  see "input: '$T/mo saics'"
  see "nextflow run $T/nextflow/main.nf"
  [ ! -e "$T/mo saics-results" ]
  text y
  keys Enter
  see 'it flows'
  same "$(yq -c '[.input, .outdir, .use_gpu, .account, .partition, .gpu_partition, .container]' "$T/mo saics-results/params.yml")" \
    "[\"$T/mo saics\",\"$T/mo saics-results\",true,\"group\",\"main\",\"gpu\",\"$T/strata.sif\"]"
  given run "$T/nextflow/main.nf" -params-file "$T/mo saics-results/params.yml" -profile slurm,apptainer -work-dir "$T/mo saics-results/work" -resume
  same "$(/usr/bin/grep -c . "$config")" 7
}

@test "plain: the pipeline, with earlier answers; no means no" {
  mkdir -p "${config%/*}"
  printf '%s\n' "input=$T/mo saics" "outdir=$T/out" profile=local gpu=no >"$config"
  pipeline_screen --plain
  see 'choice'
  text 1
  keys Enter
  see "Input: folder of mosaics (mosaic_grid*_z<NN>.ome.zarr) (q: back): $T/mo saics"
  keys Enter
  see "Output: folder for the results (q: back): $T/out"
  keys Enter
  see 'Profile: local, slurm or bmrc (q: back): local'
  keys Enter
  see 'Use GPUs: yes or no (q: back): no'
  keys Enter
  see 'Run it? [y/N]'
  keys Enter
  see 'nothing was run'
  see 'choice (s: settings, q: quit): '
  [ ! -e "$T/out" ]
  [ ! -e "$RECORD.flow" ]
}

@test "plain: answers of earlier runs that are wrong by now are not offered" {
  mkdir -p "${config%/*}"
  printf '%s\n' "input=$T/gone" profile=slrum gpu=perhaps >"$config"
  pipeline_screen --plain
  see 'choice'
  text 1
  keys Enter
  see "Input: folder of mosaics (mosaic_grid*_z<NN>.ome.zarr) (q: back): $T/data"
  keys Enter
  see "Output: folder for the results (q: back): $T/data-results"
  keys Enter
  see 'Profile: local, slurm or bmrc (q: back): slurm'
  keys Enter
  see 'Use GPUs: yes or no (q: back): no'
}

@test "what a program could not take is not offered again; what failed otherwise is" {
  export EXIT=2
  screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'choice'
  text 2
  keys Enter
  see 'aip: arguments (none: its help) (q: back):'
  text nonsense
  keys Enter
  see '(exit code 2)'
  no /usr/bin/grep -q nonsense "$config"
  text q
  keys Enter
  see 'left with 0'
  EXIT=3 screen --plain --image "$T/strata.sif" --data "$T/data"
  see 'choice'
  text 2
  keys Enter
  see 'aip: arguments'
  text 'in out'
  keys Enter
  see '(exit code 3)'
  /usr/bin/grep -qx 'args_aip=in out' "$config"
}

@test "q leaves every prompt" {
  local i
  pipeline_screen
  for i in 0 1 2 3 4 5 6; do
    choose 1
    see 'Input: folder'
    [ $i = 0 ] || { keys Enter; see 'Output: folder'; }
    [ $i -lt 2 ] || { keys Enter; see 'Profile: local'; }
    [ $i -lt 3 ] || { keys Enter; see 'Use GPUs'; }
    [ $i -lt 4 ] || { keys C-u; text yes; keys Enter; see 'SLURM account'; }
    [ $i -lt 5 ] || { keys Enter; see 'SLURM partition of gpu main'; }
    [ $i -lt 6 ] || { keys Enter; see 'SLURM partition of the GPUs'; }
    [ $((i % 2)) = 0 ] || keys C-u # else behind the default
    text q
    keys Enter
    see '<Quit>'
  done
  choose 1
  for i in 'Input: folder' 'Output: folder' 'Profile: local' 'Use GPUs' 'SLURM account' 'SLURM partition of gpu main' 'SLURM partition of the GPUs'; do see "$i"; keys Enter; done
  see 'Run it? [y/N]'
  text q
  keys Enter
  see 'nothing was run'
  see 'Enter: back to the menu, q: leave it'
  text q
  keys Enter
  see 'left with 0'
  [ ! -e "$RECORD.flow" ]
}

@test "q leaves the settings, the data, the arguments and their help" {
  mkdir -p "${config%/*}"
  echo 'args_aip=in out' >"$config"
  screen --image "$T/strata.sif"
  choose 2
  see 'Folder of your data'
  keys C-u
  text q
  keys Enter
  see '<Quit>'
  keys s Enter
  see 'Image file'
  keys C-u
  text q
  keys Enter
  see '<Quit>'
  keys s Enter
  for i in 'Image file' 'Folder of your data' 'Folder for temporary files' 'Make the GPU driver'; do see "$i"; keys Enter; done
  see 'Environment modules'
  text q
  keys Enter
  see '<Quit>'
  choose 2
  see 'aip: arguments'
  see 'in out'
  text q
  keys Enter
  see '<Quit>'
  /usr/bin/grep -qx 'args_aip=in out' "$config"
  choose 2
  see 'aip: arguments'
  keys C-u
  text Q
  keys Enter
  see '<Quit>'
  choose 2
  see 'aip: arguments'
  keys C-u Enter
  see 'Enter: back to the arguments, q: leave it'
  text q
  keys Enter
  see '<Quit>'
  no /usr/bin/grep -q =q "$config"
}

@test "plain: q leaves every prompt, also behind a default" {
  local i n
  local -a prompts=('Input: folder' 'Output: folder' 'Profile: local' 'Use GPUs' 'SLURM account' 'SLURM partition of gpu main')
  pipeline_screen --plain
  for i in "${!prompts[@]}"; do
    see 'choice (s: settings, q: quit):'
    tmux -L "$session" send-keys -t m -R
    tmux -L "$session" clear-history -t m
    text pipeline
    keys Enter
    for ((n = 0; n < i; n++)); do see "${prompts[n]}"; keys Enter; done
    see "${prompts[i]}"
    text q
    keys Enter
    see 'choice (s: settings, q: quit):'
    unseen '[y/N]'
    unseen 'exit code'
  done
  no /usr/bin/grep -q 'q$' "$config"
  text q
  keys Enter
  see 'left with 0'
  [ ! -e "$RECORD.flow" ]
}

@test "a folder whose name is the default's with a q is a folder" {
  pipeline_screen --plain pipeline --profile local --no-gpu --outdir "$T/out"
  mkdir "$T/dataq"
  see "Input: folder of mosaics (mosaic_grid*_z<NN>.ome.zarr) (q: back): $T/data"
  text q
  keys Enter
  see 'Run it? [y/N]'
  see "input: '$T/dataq'"
}

@test "on a command line, q at a question ends it: nothing is run" {
  local how
  pipeline_screen pipeline --profile local --no-gpu --outdir "$T/out"
  for how in C-u behind; do
    screen --image "$T/strata.sif" --data "$T/data" pipeline --profile local --no-gpu --outdir "$T/out"
    see 'Input: folder'
    [ $how = behind ] || keys $how
    text q
    keys Enter
    see 'nothing was run'
    see 'left with 0'
  done
  screen --image "$T/strata.sif" --data "$T/data" pipeline --profile local --no-gpu --outdir "$T/out"
  see 'Input: folder'
  keys C-u C-d
  see 'nothing was run'
  see 'left with 0'
  [ ! -e "$RECORD.flow" ]
}

@test "on a command line, a terminal is asked for what is missing, and before it runs" {
  pipeline_screen pipeline --profile local --no-gpu --outdir "$T/out"
  see 'Input: folder'
  keys C-u
  text "$T/mo saics"
  keys Enter
  see 'Run it? [y/N]'
  text y
  keys Enter
  see 'it flows'
  see 'left with 0'
}

@test "--yes asks nothing" {
  pipeline_screen --yes pipeline --profile local --input "$T/mo saics"
  see 'left with 0'
  given run "$T/nextflow/main.nf" -params-file "$T/mo saics-results/params.yml" -profile local,apptainer -work-dir "$T/mo saics-results/work" -resume
}
