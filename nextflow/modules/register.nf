// How a slice lies on the one before it: a turn and a rest of translation.
process REGISTER {
    tag "${name}"
    label 'cpu'
    maxForks Attempts.forks('register', params)
    errorStrategy { Attempts.slice(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    tuple val(name), path(fixed, stageAs: 'fixed/*'), path(moving, stageAs: 'moving/*')
    tuple val(flags), val(program)

    output:
    path "transforms/${name}", emit: transform
    path "reports/${name}.register.json", emit: report
    path 'versions.yml', emit: versions

    script:
    """
    mkdir -p transforms reports
    register '${fixed}' '${moving}' 'transforms/${name}' \\
        --report 'reports/${name}.register.json' \\
        ${flags} ${task.ext.args ?: ''} ${Attempts.host(task)}
    printf '%s:\\n  register: "%s"\\n' '${task.process}' "\$(register --version | sed 's/^register //')" > versions.yml
    """

    stub:
    """
    mkdir -p 'transforms/${name}' reports
    touch 'transforms/${name}/pairwise_registration_metrics.json' 'reports/${name}.register.json'
    printf '%s:\\n  register: stub\\n' '${task.process}' > versions.yml
    """
}
