// What became of the slices that were missing, in the table of slices.
process FINALISE {
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path manifests, stageAs: 'fragments/*'
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'slice_config/slice_config_interpolated.csv', emit: config
    path 'slice_config/*_metrics.json', emit: metrics
    path 'reports/slices.finalise.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slice_config reports
    slices finalise fragments '${config}' slice_config/slice_config_interpolated.csv \\
        --report reports/slices.finalise.json \\
        ${flags} ${task.ext.args ?: ''}
    printf '%s:\\n  slices: "%s"\\n' '${task.process}' "\$(slices --version | sed 's/^slices //')" > versions.yml
    """

    stub:
    """
    mkdir -p slice_config reports
    touch slice_config/slice_config_interpolated.csv slice_config/slice_interpolation_metrics.json reports/slices.finalise.json
    printf '%s:\\n  slices: stub\\n' '${task.process}' > versions.yml
    """
}
