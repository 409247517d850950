// The volume as an atlas has it: turned and moved onto a template.
process ALIGN {
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path volume, stageAs: 'input/*'
    tuple path(template, stageAs: 'template/*'), val(template_fingerprint)
    tuple val(flags), val(program)

    output:
    path 'align/volume_ras.ome.zarr', optional: true, emit: volume
    path 'align/*.tfm', emit: transform
    path 'align/*_metrics.json', emit: metrics
    path 'align/*.png', emit: picture
    path 'reports/volume.align.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p align reports
    align '${volume}' align/volume_ras.ome.zarr --template '${template}' \\
        --report reports/volume.align.json --preview align/volume_ras.png \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  align: "%s"\\n' '${task.process}' "\$(align --version | sed 's/^align //')" > versions.yml
    """

    stub:
    """
    mkdir -p align/volume_ras.ome.zarr reports
    touch align/volume_ras_transform.tfm align/volume_ras.png align/volume_ras.ome_metrics.json reports/volume.align.json
    printf '%s:\\n  align: stub\\n' '${task.process}' > versions.yml
    """
}
