#!/usr/bin/env bash
# usage: nextflow.sh <nextflow arguments>
#
# Runs Nextflow: the one on the PATH when it is new enough, otherwise 24.10.0
# from Maven Central, fetched once into build/nextflow and used offline after
# that. What is missing (Java, Maven) is installed when this user may, else named
# in one line.
#
# The tests run 24.10.0; of newer versions only the parser was tried (docs/install.md).
# NXF_SYNTAX_PARSER=v1 gives 25.04 and newer the parser of 24.10, for configurations of
# yours that the strict one, the default since 26.04, refuses.
#
#   STRATA_NEXTFLOW_DIR   where the jars are kept (default: build/nextflow here; of an
#                         installed package, strata/nextflow in the user's cache)
#   STRATA_NEXTFLOW=jars  do not look on the PATH
#   STRATA_NEXTFLOW_MAIN  another main class, which finds Nextflow's (for tests)
#   STRATA_NEXTFLOW_CLASSPATH  classes before Nextflow's (for tests)
#   NXF_HOME, NXF_OPTS    as for nextflow itself
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
home=${here%/*}/build/nextflow
case $here in */share/strata/scripts) home=${XDG_CACHE_HOME:-$HOME/.cache}/strata/nextflow ;; esac
home=${STRATA_NEXTFLOW_DIR:-$home}
oldest=24.10

# newer VERSION: VERSION >= oldest
newer() { [ "$(printf '%s\n' "$oldest" "$1" | sort -V | head -n 1)" = "$oldest" ]; }

if [ "${STRATA_NEXTFLOW:-}" != jars ] && onpath=$(type -P nextflow) && ! [ "$onpath" -ef "${BASH_SOURCE[0]}" ]; then
  # Asking for the version starts Java: the answer is kept beside the file's date.
  mkdir -p "$home"
  stamp="$onpath $(stat -Lc %Y "$onpath")"
  if ! grep -qsxF "$stamp" <(head -n 1 "$home/onpath" 2>/dev/null); then
    version=$("$onpath" -v 2>/dev/null | sed -n 's/.*version \([0-9.]*[0-9]\).*/\1/p') || version=
    printf '%s\n%s\n' "$stamp" "$version" >"$home/onpath"
  fi
  version=$(sed -n 2p "$home/onpath")
  if [ -n "$version" ] && newer "$version"; then
    exec "$onpath" "$@"
  fi
  echo "nextflow on the PATH (${version:-version unknown}) is older than $oldest: using our own" >&2
fi

lib=$home/lib
# The package maven brings Java: one request when neither is there.
[ -e "$lib/.complete" ] || "$here/need.sh" mvn maven
java=${JAVA_CMD:-${JAVA_HOME:+$JAVA_HOME/bin/}java}
[ -x "$(type -P "$java")" ] || { java=java; "$here/need.sh" java default-jre-headless; }
major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
if [ "${major:-0}" -lt 17 ]; then
  echo "nextflow needs Java 17 or newer, $(type -P "$java") is ${major:-unknown}: install one (Debian/Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME" >&2
  exit 1
fi

mkdir -p "$home"
exec 9>"$home/lock"
flock 9
if ! [ -e "$lib/.complete" ]; then
  echo "fetching nextflow from Maven Central into $lib (40 MiB, once)" >&2
  rm -rf "$lib"
  mkdir -p "$lib"
  if ! mvn -B -ntp -q -f "$here/nextflow-pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$(cd "$lib" && pwd)" >"$home/mvn.log" 2>&1; then
    echo "maven could not fetch nextflow: $(grep -m 1 ERROR "$home/mvn.log" || tail -n 1 "$home/mvn.log")" >&2
    exit 1
  fi
  touch "$lib/.complete"
fi
exec 9>&-

export NXF_OFFLINE=${NXF_OFFLINE:-true} NXF_DISABLE_CHECK_LATEST=true
export NXF_HOME=${NXF_HOME:-$(cd "$home" && pwd)/home}
[ -t 1 ] || export NXF_ANSI_LOG=${NXF_ANSI_LOG:-false}

# What Nextflow's own launcher opens of the Java platform.
options=(-Dfile.encoding=UTF-8 -Djava.awt.headless=true -XX:+TieredCompilation -XX:TieredStopAtLevel=1 -Xshare:auto)
for p in java.lang java.io java.nio java.net java.util java.util.concurrent.locks java.util.concurrent.atomic \
  java.nio.file.spi java.util.regex sun.nio.ch sun.nio.fs jdk.internal.misc jdk.internal.vm; do
  options+=("--add-opens=java.base/$p=ALL-UNNAMED")
done
read -ra more <<<"${NXF_OPTS:-}"
exec "$java" "${options[@]}" "${more[@]}" -cp "${STRATA_NEXTFLOW_CLASSPATH:+$STRATA_NEXTFLOW_CLASSPATH:}$lib/*" "${STRATA_NEXTFLOW_MAIN:-nextflow.cli.Launcher}" "$@"
