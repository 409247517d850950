// The volume without the smooth field that makes parts of it brighter than others.
process BIAS_FIELD {
    label 'cpu'
    maxForks Attempts.forks('bias_field', params)
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path volume, stageAs: 'input/*'
    val slices
    tuple val(flags), val(program)

    output:
    path 'bias_field/volume.ome.zarr', emit: volume
    path 'bias_field/*_metrics.json', emit: metrics
    path 'reports/volume.bias-field.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p bias_field reports
    bias-field '${volume}' bias_field/volume.ome.zarr --n_serial_slices ${slices} \\
        --report reports/volume.bias-field.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  bias-field: "%s"\\n' '${task.process}' "\$(bias-field --version | sed 's/^bias-field //')" > versions.yml
    """

    stub:
    """
    mkdir -p bias_field/volume.ome.zarr reports
    touch bias_field/volume.ome_metrics.json reports/volume.bias-field.json
    printf '%s:\\n  bias-field: stub\\n' '${task.process}' > versions.yml
    """
}
