# What the tests of the menu share.
# shellcheck shell=bash

menu=$MENU_TMP/alone/bmrc_run.sh

# Each test has a home, an image and data of its own, a runtime that records, and
# nothing of the machine that could be found instead.
setup() {
  T=$(mktemp -d "$MENU_TMP/test.XXXXXX")
  chmod 755 "$T"
  mkdir "$T/home" "$T/bin" "$T/data" "$T/here"
  cp "$MENU_ROOT/tests/menu/fake-runtime" "$T/bin/apptainer"
  ln "$MENU_TMP/real/strata.sif" "$T/strata.sif" # only its header is looked at
  unset DATA_DIR SCRATCH_DIR TMPDIR STRATA_IMAGE STRATA_NV STRATA_MODULE STRATA_RUNTIME STRATA_MENU STRATA_WORKFLOW \
    XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME FAULT EXIT PROGRAMS "${!APPTAINERENV_@}" "${!KVIKIO_@}"
  export HOME=$T/home PATH=$T/bin:$MENU_TMP/tools RECORD=$T/record CUDA_VISIBLE_DEVICES=''
  config=$HOME/.config/strata/bmrc_run.conf
  log=$HOME/.local/state/strata/bmrc_run.log
  unset BASH_ENV
  cd "$T/here" || return 1
}

teardown() {
  closed
}

# with WORD...: the menu with the image and data of the test.
with() { run "$menu" --image "$T/strata.sif" --data "$T/data" "$@"; }

# same A B: equal text.
same() { [ "$1" = "$2" ] || { echo "is:        $1"; echo "should be: $2"; return 1; }; }

# said TEXT: it is somewhere in the output. unsaid TEXT: it is not.
said() { case $output in *"$1"*) ;; *) echo "no '$1' in: $output"; return 1 ;; esac; }
unsaid() { case $output in *"$1"*) echo "'$1' in: $output"; return 1 ;; esac; }

# no WORD...: it fails. (bats takes no notice of a plain !)
no() { ! "$@"; }

# fails_with CODE TEXT: exit code, and one line that says it.
fails_with() {
  same "$status" "$1" && said "$2" && same "${#lines[@]}" 1 && case $output in 'bmrc_run.sh: '*) ;; *) return 1 ;; esac
}

# given WORD...: the runtime was given just these.
given() { same "$(paste -sd' ' "$RECORD")" "$(printf '%q\n' "$@" | paste -sd' ')"; }

# mount SOURCE TARGET: what --mount takes for it, from another CSV writer.
mount_text() {
  /usr/bin/env PATH=/usr/bin:/usr/local/bin python3 -c 'import csv, sys
csv.writer(sys.stdout, lineterminator="").writerow(["type=bind", "source=" + sys.argv[1], "destination=" + sys.argv[2]])' "$1" "$2"
}

cut() { /usr/bin/cut "$@"; }
paste() { /usr/bin/paste "$@"; }
sed() { /usr/bin/sed "$@"; }
wc() { /usr/bin/wc "$@"; }
yq() { PATH=/usr/bin:/usr/local/bin command yq "$@"; }
tmux() { PATH=/usr/bin:/usr/local/bin command tmux "$@"; }

# other_user WORD...: a run as somebody without rights.
other_user() {
  if [ "$(/usr/bin/id -u)" = 0 ]; then
    run /usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
  else
    run "$@"
  fi
}

# fake NAME TEXT: a program of that name, a script.
fake() {
  rm -f "$T/bin/$1" # it may be a link to a real one
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$T/bin/$1"
  /usr/bin/chmod +x "$T/bin/$1"
}

# --- The screen --------------------------------------------------------------------

# screen WORD...: the menu in a terminal of 90 × 30, closing the one before. Each has a server of its own: tmux takes
# a moment to go, and meanwhile still answers under its name.
screen() {
  closed
  session=menu-${T##*.}-$((++screens))
  tmux -L "$session" -f /dev/null new-session -d -s m -x "${COLUMNS_:-90}" -y "${ROWS_:-30}" \
    "$(printf '%q ' env "PATH=$PATH" "$menu" "$@"); echo \"left with \$?\"; sleep 60"
}

closed() { [ -z "${session-}" ] || tmux -L "$session" kill-server 2>/dev/null || true; }

shown() { tmux -L "$session" capture-pane -pJ -t m; }

# see TEXT: waits until it is on the screen.
see() {
  local i
  for ((i = 0; i < 150; i++)); do
    case $(shown) in *"$1"*) return 0 ;; esac
    sleep 0.1
  done
  echo "never saw '$1'; the screen is:"
  shown
  return 1
}

# keys KEY...: as tmux names them. text TEXT: as it is.
keys() { tmux -L "$session" send-keys -t m "$@"; }
text() { tmux -L "$session" send-keys -t m -l "$1"; }


