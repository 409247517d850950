// Where the stage really puts its tiles: one matrix from the overlaps of several
// mosaic grids, for all slices.
process ESTIMATE {
    tag "${[mosaics].flatten().size()} mosaics"
    label 'gpu'
    maxForks Attempts.forks('estimate', params)
    errorStrategy { Attempts.next(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaics, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple path(mosaics, stageAs: 'input?/*'), val(fingerprints)
    tuple val(flags), val(program)

    output:
    path 'stitch/transform.json', emit: transform
    path 'reports/estimate.stitch.json', emit: report
    path 'versions.yml', emit: versions

    script:
    def all = ([mosaics].flatten() ?: [fingerprints].flatten()).collect { one -> "'${one}'" }.join(' ')
    """
    mkdir -p stitch reports
    stitch ${all} --estimate_only stitch/transform.json \\
        --report reports/estimate.stitch.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  stitch: "%s"\\n' '${task.process}' "\$(stitch --version | sed 's/^stitch //')" > versions.yml
    """

    stub:
    """
    mkdir -p stitch reports
    touch stitch/transform.json reports/estimate.stitch.json
    printf '%s:\\n  stitch: stub\\n' '${task.process}' > versions.yml
    """
}
