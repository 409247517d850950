#!/bin/sh
# scripts/venv.sh DIR REQUIREMENTS: a Python environment in DIR with exactly what
# REQUIREMENTS lists. It is made once, and again when the list changes. Prints
# the path of its python. PYTHON names the interpreter to use; without it, the
# first of python3.13 … python3.11 and python3 that is at least 3.11 (zarr-python 3
# needs that) and has venv.
set -eu
[ $# = 2 ] || { echo "usage: $0 DIR REQUIREMENTS" >&2; exit 2; }
dir=$1 list=$2
stamp=$dir/requirements.installed
mkdir -p "$(dirname "$dir")"

# one at a time: several tests may want the same environment
if command -v flock >/dev/null; then
	exec 9>"$dir.lock"
	flock 9
fi
if [ -x "$dir/bin/python" ] && cmp -s "$list" "$stamp"; then
	echo "$dir/bin/python"
	exit 0
fi

python=
for p in ${PYTHON:-python3.13 python3.12 python3.11 python3.14 python3}; do
	if "$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		python=$p
		break
	fi
done
if [ -z "$python" ]; then
	echo "$0: no Python of version 3.11 or later with venv: install python3 and python3-venv, or set PYTHON" >&2
	exit 1
fi

if [ -n "$(ls -A "$dir" 2>/dev/null)" ] && [ ! -e "$dir/pyvenv.cfg" ]; then
	echo "$0: $dir exists and is no Python environment: remove it, or name another folder" >&2
	exit 1
fi
echo "$0: installing into $dir with $("$python" -V)" >&2
rm -rf "$dir"
"$python" -m venv "$dir" >&2
"$dir/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check --no-input -r "$list" >&2
cp "$list" "$stamp"
echo "$dir/bin/python"
