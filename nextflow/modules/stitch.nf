// The tiles of a mosaic grid put where the stage had them, as one slice.
process STITCH {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('stitch', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple path(transform, stageAs: 'transform/*'), val(transform_fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("stitched/${name}.ome.zarr"), val(''), emit: slice
    path "stitch/${name}.json", emit: positions
    path "stitched/${name}*_metrics.json", optional: true, emit: metrics
    path "reports/${name}.stitch.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p stitched stitch reports
    stitch '${Inputs.where(mosaic, fingerprint)}' 'stitched/${name}.ome.zarr' --save_positions 'stitch/${name}.json' --metrics \\
        --report 'reports/${name}.stitch.json' \\
        ${transform ? "--transform '${transform}'" : ''} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  stitch: "%s"\\n' '${task.process}' "\$(stitch --version | sed 's/^stitch //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'stitched/${name}.ome.zarr' stitch reports
    touch 'stitch/${name}.json' 'reports/${name}.stitch.json'
    printf '%s:\\n  stitch: stub\\n' '${task.process}' > versions.yml
    """
}
