#!/usr/bin/env bash
# usage: lint.sh   the workflow's scripts and configurations through Nextflow's strict parser, the default since 26.04
#
#   NF_LANG=CLASSPATH   another release of the parser (nf-lang) and what it needs than the one on Maven Central
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lib=$PWD/build/nextflow/lint
scripts/nextflow.sh -v >/dev/null # fetches the engine, whose classes the configurations name
mkdir -p build/nextflow
exec 9>build/nextflow/lint.lock
flock 9
if ! [ -e "$lib/.complete" ]; then
  scripts/need.sh mvn maven
  rm -rf "$lib"
  mkdir -p "$lib"
  mvn -B -ntp -q -f tests/nextflow/lint-pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$lib" >build/nextflow/lint.log 2>&1 ||
    { echo "maven could not fetch nf-lang: $(grep -m 1 ERROR build/nextflow/lint.log || tail -n 1 build/nextflow/lint.log)" >&2; exit 1; }
  touch "$lib/.complete"
fi
exec 9>&-
mapfile -t files < <(git ls-files -- main.nf nextflow.config 'nextflow/*.nf' 'nextflow/*.config' 'tests/nextflow/*.config' 'tests/slurm/*.config' ':!*/testdata/*')
echo "Nextflow's strict parser:"
STRATA_NEXTFLOW=jars STRATA_NEXTFLOW_CLASSPATH="${NF_LANG:-$lib/*}" STRATA_NEXTFLOW_MAIN=groovy.ui.GroovyMain \
  exec scripts/nextflow.sh tests/nextflow/lint.groovy nextflow/lib "${files[@]}"
