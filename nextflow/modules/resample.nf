// A mosaic grid brought to another voxel size, tile by tile.
process RESAMPLE {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('resample', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("resampled/${name}.ome.zarr"), val(''), emit: mosaic
    path "reports/${name}.resample.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p resampled reports
    resample '${Inputs.where(mosaic, fingerprint)}' 'resampled/${name}.ome.zarr' \\
        --report 'reports/${name}.resample.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)} --prefetch ${Attempts.param('resample_prefetch')}
    printf '%s:\\n  resample: "%s"\\n' '${task.process}' "\$(resample --version | sed 's/^resample //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'resampled/${name}.ome.zarr' reports
    touch 'reports/${name}.resample.json'
    printf '%s:\\n  resample: stub\\n' '${task.process}' > versions.yml
    """
}
