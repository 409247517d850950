// A mosaic grid from the raw frames of a slice, its projection and the resampled mosaic, in one pass over the frames; and what its
// tiles say of themselves (info.txt), from which the shifts are estimated.
process MOSAIC {
    tag "${name}"
    label 'cpu'
    ext chunks: { Chunks.ofFrames(task, tiles, params) }
    maxForks Attempts.forks('mosaic', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(tiles, stageAs: 'tiles/*'), val(fingerprint), val(kept)
    tuple val(flags), val(program)
    val products

    output:
    tuple val(name), path("mosaics/${name}.ome.zarr"), val(''), emit: mosaic, optional: true
    tuple val(name), path("resampled/${name}.ome.zarr"), val(''), emit: resampled, optional: true
    path "aip/${name}.ome.zarr", emit: projection, optional: true
    path "aip/${name}.png", emit: picture, optional: true
    path "info/${name}", emit: info
    path "reports/${name}.mosaic.json", emit: report
    path 'versions.yml', emit: versions

    script:
    def made = [kept ? "'mosaics/${name}.ome.zarr'" : '--no-keep_mosaic',
        Chain.has('aip') ? "--aip 'aip/${name}.ome.zarr' --aip_png 'aip/${name}.png'" : '',
        Chain.has('resample') ? "--resampled 'resampled/${name}.ome.zarr'" : ''].findAll().join(' ')
    """
    mkdir -p mosaics aip resampled reports
    mosaic tiles ${made} --slice ${Inputs.number(name)} \\
        --report 'reports/${name}.mosaic.json' \\
        ${products} \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    for tile in tiles/*; do
        mkdir -p "info/${name}/\${tile##*/}"
        cp -L "\$tile/info.txt" "info/${name}/\${tile##*/}/"
    done
    printf '%s:\\n  mosaic: "%s"\\n' '${task.process}' "\$(mosaic --version | sed 's/^mosaic //')" > versions.yml
    """

    stub:
    def made = [kept ? "mosaics/${name}.ome.zarr" : '', Chain.has('aip') ? "aip/${name}.ome.zarr" : '', Chain.has('resample') ? "resampled/${name}.ome.zarr" : ''].findAll().collect { one -> "'${one}'" }.join(' ')
    """
    mkdir -p ${made} 'info/${name}' reports
    ${Chain.has('aip') ? "touch 'aip/${name}.png'" : ''}
    touch 'reports/${name}.mosaic.json'
    printf '%s:\\n  mosaic: stub\\n' '${task.process}' > versions.yml
    """
}
