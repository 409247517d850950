// A mosaic grid whose tiles are evenly lit: divided by the flat-field that they share.
process FLATFIELD {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('flatfield', params)
    errorStrategy { Attempts.slice(task) }
    ext chunks: { Chunks.memory(task, mosaic, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("flatfield/${name}.ome.zarr"), val(''), emit: mosaic
    path "flatfield/${name}*_metrics.json", emit: metrics
    path "reports/${name}.flatfield.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p flatfield reports
    flatfield '${Inputs.where(mosaic, fingerprint)}' 'flatfield/${name}.ome.zarr' \\
        --report 'reports/${name}.flatfield.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)} --no-use_gpu
    printf '%s:\\n  flatfield: "%s"\\n' '${task.process}' "\$(flatfield --version | sed 's/^flatfield //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'flatfield/${name}.ome.zarr' reports
    touch 'flatfield/${name}.ome_metrics.json' 'reports/${name}.flatfield.json'
    printf '%s:\\n  flatfield: stub\\n' '${task.process}' > versions.yml
    """
}
