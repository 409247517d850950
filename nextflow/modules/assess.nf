// How good each slice is, beside its neighbours; those that are not good enough are marked in the table.
process ASSESS {
    tag "${[slices].flatten().size()} slices"
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(names), path(slices, stageAs: 'input?/*'), val(fingerprints)
    path mosaics, stageAs: 'mosaics/*'
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'slice_config/slice_config_assessed.csv', emit: config
    path 'slice_config/*_metrics.json', emit: metrics
    path 'reports/slices.assess.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slices slice_config reports
    ${Inputs.links(names, slices)}
    slices assess slices slice_config/slice_config_assessed.csv \\
        ${config ? "--existing_config '${config}'" : ''} ${mosaics ? '--mosaics mosaics' : ''} \\
        --report reports/slices.assess.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  slices: "%s"\\n' '${task.process}' "\$(slices --version | sed 's/^slices //')" > versions.yml
    """

    stub:
    """
    mkdir -p slice_config reports
    touch slice_config/slice_config_assessed.csv slice_config/slice_quality_assessment_metrics.json reports/slices.assess.json
    printf '%s:\\n  slices: stub\\n' '${task.process}' > versions.yml
    """
}
