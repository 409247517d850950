// Average intensity projection of a mosaic grid: OME-Zarr with a pyramid, and PNG.
process AIP {
    tag "${name}"
    label 'gpu'
    maxForks params.use_gpu ? params.aip_max_forks : null
    errorStrategy { Attempts.next(task) }
    ext gpu: { Attempts.gpu(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, pattern: '{aip,reports}/*'

    input:
    tuple val(name), path(mosaic, stageAs: 'input/*'), val(fingerprint)

    output:
    tuple val(name), path("aip/${name}.ome.zarr"), emit: projection
    path "aip/${name}.png", emit: preview
    path "reports/${name}.aip.json", emit: report
    path 'versions.yml', emit: versions

    script:
    def format = [
        params.zarr_format ? "--zarr_format ${params.zarr_format}" : '',
        params.codec ? "--codec ${params.codec}" : '',
        task.ext.args ?: '',
    ].findAll().join(' ')
    """
    mkdir -p aip reports
    aip '${mosaic}' 'aip/${name}.ome.zarr' --png 'aip/${name}.png' \\
        --report 'reports/${name}.aip.json' \\
        --n_levels ${params.n_levels} ${format} ${Attempts.flags(task)}
    printf '%s:\\n  aip: "%s"\\n' '${task.process}' "\$(aip --version | sed 's/^aip //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'aip/${name}.ome.zarr' reports
    touch 'aip/${name}.png' 'reports/${name}.aip.json'
    printf '%s:\\n  aip: stub\\n' '${task.process}' > versions.yml
    """
}
