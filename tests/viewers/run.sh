#!/usr/bin/env bash
# usage: run.sh   (make test-viewers)
# napari, in a window on a display without a screen, and Neuroglancer, in headless Chromium, open what `view` serves. It
# installs both from PyPI (1 GB) and what they draw with from Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/need.sh chromium chromium
scripts/need.sh xvfb-run xvfb
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
packages=(libgl1 libgl1-mesa-dri libegl1 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1
  libxcb-render-util0 libxcb-xinerama0 libxcb-shape0 libdbus-1-3)
if ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
  echo "installing ${packages[*]} (for napari's window)" >&2
  "${as_root[@]}" apt-get -qq update >/dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}" >/dev/null
fi
python=$(scripts/venv.sh build/venv-viewers tests/viewers/requirements.txt)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
timeout 300 "$python" tests/viewers/viewers.py bin "$tmp/neuroglancer" neuroglancer
QT_QPA_PLATFORM=xcb LIBGL_ALWAYS_SOFTWARE=1 timeout 300 xvfb-run -a -s '-screen 0 1280x1024x24' \
  "$python" tests/viewers/viewers.py bin "$tmp/napari" napari | grep -v '^Root group'
