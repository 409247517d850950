// One HTML page about the run: pictures, shifts, decisions, maps, times, warnings; and its summaries for MultiQC.
process REPORT {
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { result -> Chain.place(result) }

    input:
    path reports, stageAs: 'reports/*'
    path previews, stageAs: 'previews/*'
    path projections, stageAs: 'aip/*'
    path maps, stageAs: 'focal/*'
    path positions, stageAs: 'stitch/*'
    path crops, stageAs: 'crop/*'
    path tables, stageAs: 'volume/*'
    path recorded, stageAs: 'recorded/*'
    path repaired, stageAs: 'shifts/*'
    path metrics, stageAs: 'metrics?/*'
    path transforms, stageAs: 'transforms/*'
    path config, stageAs: 'slice_config/*'
    path compared, stageAs: 'diagnostics/stitch/*'
    path diagnosed, stageAs: 'diagnostics/*'
    val title
    tuple val(flags), val(program)

    output:
    path 'qc-report.html', emit: page
    path 'reports/run.qc-report.json'
    path '*_mqc.json', optional: true
    path 'versions.yml', emit: versions

    script:
    def missing = Attempts.table().collect { one -> Report.quoted(one) }.join(' ')
    def parts = Report.parts(
        previews: previews, projections: projections, maps: maps, positions: positions, crops: crops, tables: tables,
        recorded: recorded, repaired: repaired, metrics: metrics, transforms: transforms, config: config, diagnostics: [compared, diagnosed].flatten(), missing: missing)
    """
    ${missing ? "printf '%s\\n' ${missing} > missing_slices.tsv" : ''}
    mkdir -p reports
    qc-report qc-report.html ${parts} --title ${Report.quoted(title)} --multiqc . --report reports/run.qc-report.json ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  qc-report: "%s"\\n' '${task.process}' "\$(qc-report --version | sed 's/^qc-report //')" > versions.yml
    """

    stub:
    """
    mkdir -p reports
    touch qc-report.html strata_mqc.json reports/run.qc-report.json
    printf '%s:\\n  qc-report: stub\\n' '${task.process}' > versions.yml
    """
}
