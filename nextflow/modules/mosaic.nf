// A mosaic grid from the raw frames of a slice; and what its tiles say of themselves
// (info.txt), from which the shifts are estimated.
process MOSAIC {
    tag "${name}"
    label 'cpu'
    maxForks params.mosaic_max_forks
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { Chain.place(it) }

    input:
    tuple val(name), path(tiles, stageAs: 'tiles/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("mosaics/${name}.ome.zarr"), val(''), emit: mosaic
    path "info/${name}", emit: info
    path "reports/${name}.mosaic.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p mosaics reports
    mosaic tiles 'mosaics/${name}.ome.zarr' --slice ${Inputs.number(name)} \\
        --report 'reports/${name}.mosaic.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    for tile in tiles/*; do
        mkdir -p "info/${name}/\${tile##*/}"
        cp -L "\$tile/info.txt" "info/${name}/\${tile##*/}/"
    done
    printf '%s:\\n  mosaic: "%s"\\n' '${task.process}' "\$(mosaic --version | sed 's/^mosaic //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'mosaics/${name}.ome.zarr' 'info/${name}' reports
    touch 'reports/${name}.mosaic.json'
    printf '%s:\\n  mosaic: stub\\n' '${task.process}' > versions.yml
    """
}
