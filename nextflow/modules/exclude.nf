// Runs of slices that do not fit the one before them: their transforms are not to be used.
process EXCLUDE {
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path transforms, stageAs: 'transforms/*'
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'slice_config/slice_config_excluded.csv', emit: config
    path 'slice_config/*_metrics.json', optional: true, emit: metrics
    path 'reports/slices.exclude.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slice_config reports
    slices exclude transforms '${config}' slice_config/slice_config_excluded.csv \\
        --report reports/slices.exclude.json \\
        ${flags} ${task.ext.args ?: ''}
    printf '%s:\\n  slices: "%s"\\n' '${task.process}' "\$(slices --version | sed 's/^slices //')" > versions.yml
    """

    stub:
    """
    mkdir -p slice_config reports
    touch slice_config/slice_config_excluded.csv slice_config/auto_exclude_metrics.json reports/slices.exclude.json
    printf '%s:\\n  slices: stub\\n' '${task.process}' > versions.yml
    """
}
