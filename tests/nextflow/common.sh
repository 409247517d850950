# What the parts of the workflow's tests share besides lib.sh: a phantom, mosaics of other programs, the parameters of a chain.
# Sourced by them, after they set -uo pipefail.
# shellcheck shell=bash disable=SC2034 # for the caller
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
finish() {
  stop_engine
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else rm -rf "$tmp"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
export NXF_HOME=$tmp/home NXF_ANSI_LOG=false
main=$root/nextflow/main.nf
faulty=(-c "$root/tests/nextflow/faults/faults.config")
launch=$tmp/launch
# As a regular expression.
version=$("$REAL_BIN/aip" --version | sed 's/^aip //; s/[][().+*]/\\&/g')

"$root/scripts/test-data.sh" "$tmp/foreign" || exit 1
make_mosaics "$tmp/phantom" 3 || exit 1
mosaics=("$tmp"/phantom/mosaic_grid*_z*.ome.zarr)
names=("${mosaics[@]##*/}")
names=("${names[@]%.ome.zarr}")
foreign=(m_f32_raw_edge m_f32_v2lz4 m_i16_v3lz4 m_u16_v3shard m_u8_v3raw)
ok 'the phantom has three mosaics' same ${#mosaics[@]} 3
"$root/bin/phantom" "$tmp/block" --slices 4 --tiles 2,3 --tile 64,80,80 --interval 120 --quiet || exit 1
cat >"$tmp/chain.yml" <<YML
input: $tmp/block
outdir: chain
resample_resolution: 4
crop_depth: 160
stack_slicing_interval_mm: 0.12
stack_search_range_mm: 0.02
stack_moving_z_first_index: 1
stack_pyramid_resolutions: [4, 8]
n_levels: 1
YML
for s in "${stages[@]}"; do [ "$s" = qc-report ] || printf '%s_cpus: 1\n' "$s"; done >>"$tmp/chain.yml"
chain=(-params-file "$tmp/chain.yml")
results=$launch/chain
# tasks LOG: how many of each process a run executed, as "2 AIP 1 STACK".
tasks() { sed -n 's/.*[Ss]ubmitted process > STRATA:\([A-Z_]*\).*/\1/p' "$1" | sort | uniq -c | xargs; }

# images FOLDER: how many OME-Zarr it holds. names_in FOLDER: what it holds, in a line.
images() { find "$1" -maxdepth 1 -name '*.ome.zarr' | wc -l; }
names_in() { find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs; }
start_engine
