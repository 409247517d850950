// A slice from its tissue surface down to one depth, without the water above.
process CROP {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('crop', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, slice, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(slice, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("cropped/${name}.ome.zarr"), val(''), emit: slice
    path "cropped/${name}_crop.json", emit: found
    path "cropped/${name}*_metrics.json", optional: true, emit: metrics
    path "reports/${name}.crop.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p cropped reports
    crop '${Inputs.where(slice, fingerprint)}' 'cropped/${name}.ome.zarr' \\
        --report 'reports/${name}.crop.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  crop: "%s"\\n' '${task.process}' "\$(crop --version | sed 's/^crop //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'cropped/${name}.ome.zarr' reports
    touch 'cropped/${name}_crop.json' 'reports/${name}.crop.json'
    printf '%s:\\n  crop: stub\\n' '${task.process}' > versions.yml
    """
}
