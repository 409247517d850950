// A picture of a slice or of the volume: three orthogonal cuts.
process PREVIEW {
    tag "${name}"
    label 'cpu'
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(image, stageAs: 'input/*'), val(fingerprint)
    tuple val(flags), val(program)

    output:
    path "previews/${name}.png", emit: picture
    path "reports/${name}.preview.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p previews reports
    preview '${Inputs.where(image, fingerprint)}' 'previews/${name}.png' \\
        --report 'reports/${name}.preview.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  preview: "%s"\\n' '${task.process}' "\$(preview --version | sed 's/^preview //')" > versions.yml
    """

    stub:
    """
    mkdir -p previews reports
    touch 'previews/${name}.png' 'reports/${name}.preview.json'
    printf '%s:\\n  preview: stub\\n' '${task.process}' > versions.yml
    """
}
