// All slices on one canvas, each where the shifts put it.
process COMMON_SPACE {
    tag "${[slices].flatten().size()} slices"
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(names), path(slices, stageAs: 'input?/*'), val(fingerprints)
    tuple path(shifts, stageAs: 'shifts/*'), val(shifts_fingerprint)
    tuple path(config, stageAs: 'config/*'), val(config_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'common_space/*.ome.zarr', emit: slices
    path 'common_space/*_metrics.json', emit: metrics
    path 'reports/slices.common-space.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slices reports
    ${Inputs.links(names, slices)}
    common-space slices '${shifts}' common_space \\
        ${config ? "--slice_config '${config}'" : ''} \\
        --report reports/slices.common-space.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  common-space: "%s"\\n' '${task.process}' "\$(common-space --version | sed 's/^common-space //')" > versions.yml
    """

    stub:
    """
    mkdir -p reports ${names.collect { one -> "'common_space/${one}.ome.zarr'" }.join(' ')}
    touch common_space/common_space_alignment_metrics.json reports/slices.common-space.json
    printf '%s:\\n  common-space: stub\\n' '${task.process}' > versions.yml
    """
}
