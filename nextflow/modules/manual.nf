// What someone needs who aligns slices by hand: pictures of neighbours, and the transforms that were found.
process MANUAL {
    tag "${[slices].flatten().size()} slices"
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(names), path(slices, stageAs: 'input?/*'), val(fingerprints)
    path transforms, stageAs: 'transforms/*'
    tuple val(flags), val(program)

    output:
    path 'manual', emit: bundle
    path 'reports/slices.manual.json', emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p slices reports
    ${Inputs.links(names, slices)}
    manual export slices transforms manual \\
        --report reports/slices.manual.json \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  manual: "%s"\\n' '${task.process}' "\$(manual --version | sed 's/^manual //')" > versions.yml
    """

    stub:
    """
    mkdir -p manual reports
    touch reports/slices.manual.json
    printf '%s:\\n  manual: stub\\n' '${task.process}' > versions.yml
    """
}
