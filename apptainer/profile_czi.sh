#!/usr/bin/env bash
# Asks for a CZI file and how much of it to read, and lets bench-czi say where the time goes; the same without questions:
# profile_czi.sh ARGUMENT of bench-czi profile... What is asked, and how, stands in benchmark_czi.sh, beside this script.
case ${BASH_SOURCE[0]} in */*) here=${BASH_SOURCE[0]%/*} ;; *) here=. ;; esac
STRATA_CZI_COMMAND=profile
# shellcheck source-path=SCRIPTDIR source=benchmark_czi.sh
. "$here/benchmark_czi.sh"
