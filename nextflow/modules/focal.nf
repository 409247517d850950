// A mosaic grid without the curvature of its focal plane, and the maps that were
// found on the way.
process FOCAL {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('focal', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, mosaic, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple path(correction, stageAs: 'correction/*'), val(correction_fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("corrected/${name}.ome.zarr"), val(''), emit: mosaic
    path "focal/${name}", emit: maps
    path "reports/${name}.focal.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p corrected focal reports
    focal '${Inputs.where(mosaic, fingerprint)}' 'corrected/${name}.ome.zarr' --save_map 'focal/${name}' \\
        --report 'reports/${name}.focal.json' \\
        ${correction ? "--correction '${correction}'" : ''} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  focal: "%s"\\n' '${task.process}' "\$(focal --version | sed 's/^focal //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'corrected/${name}.ome.zarr' 'focal/${name}' reports
    touch 'reports/${name}.focal.json'
    printf '%s:\\n  focal: stub\\n' '${task.process}' > versions.yml
    """
}
