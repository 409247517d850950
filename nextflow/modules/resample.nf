// A mosaic grid brought to another voxel size, tile by tile.
process RESAMPLE {
    tag "${Groups.tag(name)}"
    label 'gpu'
    maxForks Attempts.forks('resample', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }, slices: { Groups.count(name) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("resampled/${Groups.any(name)}.ome.zarr"), val(''), emit: mosaic
    path "reports/${Groups.any(name)}.resample.json", emit: report
    path 'versions.yml', emit: versions
    path 'left.txt', optional: true, emit: left

    script:
    """
    mkdir -p resampled reports
    ${Groups.list(name, mosaic, fingerprint, 'resampled')}resample ${Groups.pair(name, mosaic, fingerprint, 'resampled')} \\
        --report 'reports/${Groups.word(name)}.resample.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)} --prefetch ${Attempts.param('resample_prefetch')}${Groups.rest(name, 'resampled', 'resample')}
    printf '%s:\\n  resample: "%s"\\n' '${task.process}' "\$(resample --version | sed 's/^resample //')" > versions.yml
    """

    stub:
    """
    mkdir -p ${Groups.paths(name, 'resampled/', '.ome.zarr')} reports
    touch ${Groups.paths(name, 'reports/', '.resample.json')}
    printf '%s:\\n  resample: stub\\n' '${task.process}' > versions.yml
    """
}
