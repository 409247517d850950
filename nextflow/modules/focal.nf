// A mosaic grid without the curvature of its focal plane, and the maps that were
// found on the way.
process FOCAL {
    tag "${Groups.tag(name)}"
    label 'gpu'
    maxForks Attempts.forks('focal', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }, slices: { Groups.count(name) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple path(correction, stageAs: 'correction/*'), val(correction_fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("corrected/${Groups.any(name)}.ome.zarr"), val(''), emit: mosaic
    path "focal/${Groups.any(name)}", emit: maps
    path "reports/${Groups.any(name)}.focal.json", emit: report
    path 'versions.yml', emit: versions
    path 'left.txt', optional: true, emit: left

    script:
    """
    mkdir -p corrected focal reports
    ${Groups.list(name, mosaic, fingerprint, 'corrected')}focal ${Groups.pair(name, mosaic, fingerprint, 'corrected')} --save_map 'focal/${Groups.word(name)}' \\
        --report 'reports/${Groups.word(name)}.focal.json' \\
        ${correction ? "--correction '${correction}'" : ''} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}${Groups.rest(name, 'corrected', 'focal', ['focal/{name}'])}
    printf '%s:\\n  focal: "%s"\\n' '${task.process}' "\$(focal --version | sed 's/^focal //')" > versions.yml
    """

    stub:
    """
    mkdir -p ${Groups.paths(name, 'corrected/', '.ome.zarr')} ${Groups.paths(name, 'focal/', '')} reports
    touch ${Groups.paths(name, 'reports/', '.focal.json')}
    printf '%s:\\n  focal: stub\\n' '${task.process}' > versions.yml
    """
}
