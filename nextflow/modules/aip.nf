// Average intensity projection of a mosaic grid, a slice or the volume: OME-Zarr
// with a pyramid, and PNG.
process AIP {
    tag "${name}"
    label 'gpu'
    maxForks Attempts.forks('aip', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, image, params) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(image, stageAs: 'input/*'), val(fingerprint), val(folder)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("${folder}/${name}.ome.zarr"), emit: projection
    path "${folder}/${name}.png", emit: picture
    path "reports/${name}.aip.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p '${folder}' reports
    aip '${Inputs.where(image, fingerprint)}' '${folder}/${name}.ome.zarr' --png '${folder}/${name}.png' \\
        --report 'reports/${name}.aip.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}
    printf '%s:\\n  aip: "%s"\\n' '${task.process}' "\$(aip --version | sed 's/^aip //')" > versions.yml
    """

    stub:
    """
    mkdir -p '${folder}/${name}.ome.zarr' reports
    touch '${folder}/${name}.png' 'reports/${name}.aip.json'
    printf '%s:\\n  aip: stub\\n' '${task.process}' > versions.yml
    """
}
