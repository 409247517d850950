// A slice with its tiles where the motor was sent, beside the slice as it was stitched: what the estimate changed.
process STITCH_MOTORS {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('stitch', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint), path(slice, stageAs: 'refined/*'), path(positions, stageAs: 'positions/*')
    tuple val(flags), val(program)

    output:
    path "diagnostics/stitch/${name}", emit: comparison
    path "reports/${name}.stitch-compare.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p diagnostics/stitch reports
    stitch '${Inputs.where(mosaic, fingerprint)}' motor.ome.zarr --save_positions motor.json --n_levels 0 ${flags} ${Attempts.flags(task)}
    stitch compare motor.ome.zarr '${slice}' 'diagnostics/stitch/${name}' --positions 'motor.json,${positions}' --label1 Motor --label2 Estimate \\
        --report 'reports/${name}.stitch-compare.json' ${Attempts.share(task)}
    rm -rf motor.ome.zarr
    printf '%s:\\n  stitch: "%s"\\n' '${task.process}' "\$(stitch --version | sed 's/^stitch //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'diagnostics/stitch/${name}' reports
    touch 'diagnostics/stitch/${name}'/{comparison.png,metrics.json} 'reports/${name}.stitch-compare.json'
    printf '%s:\\n  stitch: stub\\n' '${task.process}' > versions.yml
    """
}
