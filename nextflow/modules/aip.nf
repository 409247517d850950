// Average intensity projection of a mosaic grid, a slice or the volume: OME-Zarr
// with a pyramid, and PNG.
process AIP {
    tag "${Groups.tag(name)}"
    label 'gpu'
    maxForks Attempts.forks('aip', params)
    errorStrategy { Attempts.slice(task) }
    ext gpu: { Attempts.gpu(task) }, chunks: { Chunks.memory(task, image, params) }, slices: { Groups.count(name) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(image, stageAs: 'input/*'), val(fingerprint), val(folder)
    tuple val(flags), val(program)

    output:
    tuple val(name), path("${folder}/${Groups.any(name)}.ome.zarr"), emit: projection
    path "${folder}/${Groups.any(name)}.png", emit: picture
    path "reports/${Groups.any(name)}.aip.json", emit: report
    path 'versions.yml', emit: versions
    path 'left.txt', optional: true, emit: left

    script:
    """
    mkdir -p '${folder}' reports
    ${Groups.list(name, image, fingerprint, folder)}aip ${Groups.pair(name, image, fingerprint, folder)} --png '${folder}/${Groups.word(name)}.png' \\
        --report 'reports/${Groups.word(name)}.aip.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.flags(task)}${Groups.rest(name, folder, 'aip', ["${folder}/{name}.png"])}
    printf '%s:\\n  aip: "%s"\\n' '${task.process}' "\$(aip --version | sed 's/^aip //')" > versions.yml
    """

    stub:
    """
    mkdir -p ${Groups.paths(name, "${folder}/", '.ome.zarr')} reports
    touch ${Groups.paths(name, "${folder}/", '.png')} ${Groups.paths(name, 'reports/', '.aip.json')}
    printf '%s:\\n  aip: stub\\n' '${task.process}' > versions.yml
    """
}
