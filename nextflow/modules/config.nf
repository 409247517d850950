// A table of the slices, which the stages after it add to: what is used, what was mended, what was left out.
process CONFIG {
    tag "${names.size()} slices"
    label 'table'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    val names
    tuple val(flags), val(program)

    output:
    path 'slice_config/slice_config.csv', emit: config
    path 'reports/slices.config.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slice_config reports slices
    ${names.collect { one -> "mkdir 'slices/${one}.ome.zarr'" }.join('\n    ')}
    slices config slices slice_config/slice_config.csv --from mosaics \\
        --report reports/slices.config.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  slices: "%s"\\n' '${task.process}' "\$(slices --version | sed 's/^slices //')" > versions.yml
    """

    stub:
    """
    mkdir -p slice_config reports
    touch slice_config/slice_config.csv reports/slices.config.json
    printf '%s:\\n  slices: stub\\n' '${task.process}' > versions.yml
    """
}
