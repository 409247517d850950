#!/usr/bin/env bash
# usage: test-data.sh [FOLDER]   unpacks the small mosaic grids that other programs
# wrote (tests/golden/inputs) into FOLDER (default build/test-data), where
# the workflow's test profile looks for them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
to=${1:-$here/../build/test-data}
"$here/need.sh" unzip unzip
mkdir -p "$to"
for z in "$here"/../tests/golden/inputs/m_*.zip; do
  unzip -qo "$z" -d "$to"
done
