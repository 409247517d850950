// The tiles of a mosaic grid put where the stage had them, as one slice.
process STITCH {
    tag "${Groups.tag(name)}"
    label 'gpu'
    maxForks Attempts.forks('stitch', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }, slices: { Groups.count(name) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple path(transform, stageAs: 'transform/*'), val(transform_fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("stitched/${Groups.any(name)}.ome.zarr"), val(''), emit: slice
    path "stitch/${Groups.any(name)}.json", emit: positions
    path "stitched/${Groups.any(name, '*')}_metrics.json", optional: true, emit: metrics
    path "reports/${Groups.any(name)}.stitch.json", emit: report
    path 'versions.yml', emit: versions
    path 'left.txt', optional: true, emit: left

    script:
    """
    mkdir -p stitched stitch reports
    ${Groups.list(name, mosaic, fingerprint, 'stitched')}stitch ${Groups.pair(name, mosaic, fingerprint, 'stitched')} --save_positions 'stitch/${Groups.word(name)}.json' --metrics \\
        --report 'reports/${Groups.word(name)}.stitch.json' \\
        ${transform ? "--transform '${transform}'" : ''} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}${Groups.rest(name, 'stitched', 'stitch', ['stitch/{name}.json', 'stitched/{name}.ome_metrics.json'])}
    printf '%s:\\n  stitch: "%s"\\n' '${task.process}' "\$(stitch --version | sed 's/^stitch //')" > versions.yml
    """

    stub:
    """
    mkdir -p ${Groups.paths(name, 'stitched/', '.ome.zarr')} stitch reports
    touch ${Groups.paths(name, 'stitch/', '.json')} ${Groups.paths(name, 'reports/', '.stitch.json')}
    printf '%s:\\n  stitch: stub\\n' '${task.process}' > versions.yml
    """
}
