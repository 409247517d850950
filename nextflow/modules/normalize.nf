// A slice with agarose at 0 and tissue at about 1.
process NORMALIZE {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('normalize', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(slice, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("normalized/${name}.ome.zarr"), val(''), emit: slice
    path "normalized/${name}*_metrics.json", emit: metrics
    path "reports/${name}.normalize.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p normalized reports
    normalize '${Inputs.where(slice, fingerprint)}' 'normalized/${name}.ome.zarr' \\
        --report 'reports/${name}.normalize.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)} --no-use_gpu
    printf '%s:\\n  normalize: "%s"\\n' '${task.process}' "\$(normalize --version | sed 's/^normalize //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'normalized/${name}.ome.zarr' reports
    touch 'normalized/${name}.ome_metrics.json' 'reports/${name}.normalize.json'
    printf '%s:\\n  normalize: stub\\n' '${task.process}' > versions.yml
    """
}
