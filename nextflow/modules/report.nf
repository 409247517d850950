// One HTML page about the run: pictures, shifts, decisions, maps, times, warnings; and its summaries for MultiQC.
process REPORT {
    label 'cpu'
    errorStrategy { Attempts.next(task) }
    publishDir params.outdir, mode: params.publish_mode, overwrite: true, saveAs: { Chain.place(it) }

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
    val title
    tuple val(flags), val(program)

    output:
    path 'qc-report.html', emit: page
    path 'reports/run.qc-report.json'
    path '*_mqc.json', optional: true
    path 'versions.yml', emit: versions

    script:
    def quoted = { "'${it.toString().replace("'", "'\\''")}'" }
    def missing = Attempts.table().collect(quoted).join(' ')
    def csv = [tables].flatten().collectEntries { [it.toString().tokenize('/').last(), it] }
    // stack is given the repaired shifts, where there are such.
    def motors = recorded ?: csv['shifts_xy.csv']
    def made = [repaired].flatten()
    def measured = [metrics].flatten() + [transforms].flatten().collect { "${it}/pairwise_registration_metrics.json" }
    def parts = [
        '--reports reports',
        previews ? '--previews previews' : '',
        projections ? '--previews aip' : '',
        maps ? '--focal focal' : '',
        positions ? '--stitch stitch' : '',
        crops ? '--crop crop' : '',
        motors ? "--shifts ${quoted(motors)}" : '',
        made.findAll { it.name.endsWith('.csv') }.collect { "--shifts_clean ${quoted(it)}" }.join(),
        made.findAll { !it.name.endsWith('.csv') }.collect { "--shifts_plots ${quoted(it)}" }.join(),
        csv['shifts_found.csv'] ? "--shifts_found ${quoted(csv['shifts_found.csv'])}" : '',
        csv['z_matches.csv'] ? "--z_matches ${quoted(csv['z_matches.csv'])}" : '',
        csv['stacking_decisions.csv'] ? "--decisions ${quoted(csv['stacking_decisions.csv'])}" : '',
        measured ? "--metrics ${measured.collect(quoted).join(',')}" : '',
        missing ? '--missing missing_slices.tsv' : '',
    ].findAll().join(' ')
    """
    ${missing ? "printf '%s\\n' ${missing} > missing_slices.tsv" : ''}
    mkdir -p reports
    qc-report qc-report.html ${parts} --title ${quoted(title)} --multiqc . --report reports/run.qc-report.json ${flags} ${task.ext.args ?: ''} ${Attempts.share(task)}
    printf '%s:\\n  qc-report: "%s"\\n' '${task.process}' "\$(qc-report --version | sed 's/^qc-report //')" > versions.yml
    """

    stub:
    """
    mkdir -p reports
    touch qc-report.html strata_mqc.json reports/run.qc-report.json
    printf '%s:\\n  qc-report: stub\\n' '${task.process}' > versions.yml
    """
}
