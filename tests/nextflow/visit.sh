#!/usr/bin/env bash
# view, for a reader who opens the page that it prints, sees the first image described, and ends it: its arguments, and exit status 0 if
# the page was there.
set -euo pipefail
said=$(mktemp)
trap 'kill $viewer 2>/dev/null || true; rm -f "$said"' EXIT
"$REAL_BIN/view" "$@" >"$said" &
viewer=$!
until [[ $(<"$said") =~ http://127\.0\.0\.1:([0-9]+)(/[0-9a-f]+/) ]]; do
  kill -0 $viewer 2>/dev/null || { wait $viewer; exit; }
  sleep 0.1
done
port=${BASH_REMATCH[1]} page=${BASH_REMATCH[2]}
for part in '' api/images/0; do
  exec {server}<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n\r\n' "$page$part" "$port" >&"$server"
  read -r answer <&"$server"
  exec {server}>&-
  [[ $answer == *' 200 '* ]] || { echo "view: '$part' of its page is not there: $answer" >&2; exit 1; }
done
kill -TERM $viewer
status=0
wait $viewer || status=$?
[ $status = 143 ] || { echo "view: ended with $status" >&2; exit 1; }
