// A slice without the decay of its signal with depth.
process ATTENUATION {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('attenuation', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(slice, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("attenuation/${name}.ome.zarr"), val(''), emit: slice
    path "attenuation/${name}*_metrics.json", emit: metrics
    path "reports/${name}.attenuation.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p attenuation reports
    attenuation '${Inputs.where(slice, fingerprint)}' 'attenuation/${name}.ome.zarr' \\
        --report 'reports/${name}.attenuation.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  attenuation: "%s"\\n' '${task.process}' "\$(attenuation --version | sed 's/^attenuation //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'attenuation/${name}.ome.zarr' reports
    touch 'attenuation/${name}.ome_metrics.json' 'reports/${name}.attenuation.json'
    printf '%s:\\n  attenuation: stub\\n' '${task.process}' > versions.yml
    """
}
