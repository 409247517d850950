// The shifts without the glitches of a stage that lost its home, and the slices that these concern.
process CLEAN {
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple path(shifts, stageAs: 'given/*'), val(shifts_fingerprint)
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'shifts/shifts_xy_clean.csv', emit: shifts
    path 'slice_config/slice_config_rehomed.csv', optional: true, emit: config
    path 'shifts/diagnostics', emit: diagnostics
    path 'shifts/*_metrics.json', emit: metrics
    path 'reports/shifts.clean.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p shifts slice_config reports
    shifts clean '${shifts}' shifts/shifts_xy_clean.csv --diagnostics shifts/diagnostics \\
        ${config ? "--slice_config_in '${config}' --slice_config_out slice_config/slice_config_rehomed.csv" : ''} \\
        --report reports/shifts.clean.json \\
        ${flags} ${task.ext.args ?: ''}
    printf '%s:\\n  shifts: "%s"\\n' '${task.process}' "\$(shifts --version | sed 's/^shifts //')" > versions.yml
    """

    stub:
    """
    mkdir -p shifts/diagnostics slice_config reports
    touch shifts/shifts_xy_clean.csv shifts/rehoming_detection_metrics.json ${config ? 'slice_config/slice_config_rehomed.csv' : ''} reports/shifts.clean.json
    printf '%s:\\n  shifts: stub\\n' '${task.process}' > versions.yml
    """
}
