// A slice from its tissue surface down to one depth, without the water above.
process CROP {
    tag "${Groups.tag(name)}"
    label 'gpu'
    maxForks Attempts.forks('crop', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, slice, params) }, slices: { Groups.count(name) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(slice, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("cropped/${Groups.any(name)}.ome.zarr"), val(''), emit: slice
    path "cropped/${Groups.any(name)}_crop.json", emit: found
    path "cropped/${Groups.any(name, '*')}_metrics.json", optional: true, emit: metrics
    path "reports/${Groups.any(name)}.crop.json", emit: report
    path 'versions.yml', emit: versions
    path 'left.txt', optional: true, emit: left

    script:
    """
    mkdir -p cropped reports
    ${Groups.list(name, slice, fingerprint, 'cropped')}crop ${Groups.pair(name, slice, fingerprint, 'cropped')} \\
        --report 'reports/${Groups.word(name)}.crop.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}${Groups.rest(name, 'cropped', 'crop', ['cropped/{name}_crop.json', 'cropped/{name}.ome_metrics.json'])}
    printf '%s:\\n  crop: "%s"\\n' '${task.process}' "\$(crop --version | sed 's/^crop //')" > versions.yml
    """

    stub:
    """
    mkdir -p ${Groups.paths(name, 'cropped/', '.ome.zarr')} reports
    touch ${Groups.paths(name, 'cropped/', '_crop.json')} ${Groups.paths(name, 'reports/', '.crop.json')}
    printf '%s:\\n  crop: stub\\n' '${task.process}' > versions.yml
    """
}
