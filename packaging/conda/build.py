"""Builds and tests the conda package of build/dist, without a network: build.py VERSION DIST OUT"""
import os
import pathlib
import sys
import tempfile
import warnings

import rattler_build

version, dist, out = sys.argv[1:]
os.environ.update(STRATA_VERSION=version, STRATA_DIST=os.path.abspath(dist))
warnings.simplefilter("ignore")
os.makedirs(out, exist_ok=True)
with tempfile.TemporaryDirectory() as channel:  # nothing but the archive is needed
    for system in ("noarch", "linux-64", "linux-aarch64", "osx-64", "osx-arm64"):
        folder = pathlib.Path(channel, system)
        folder.mkdir()
        (folder / "repodata.json").write_text('{"info": {"subdir": "%s"}, "packages": {}, "packages.conda": {}}' % system)
    rattler_build.build_recipes([pathlib.Path(__file__).with_name("recipe.yaml")], output_dir=out, channel=[pathlib.Path(channel).as_uri()])
