/** The command line of the report: what it is made of. */
class Report {

    /** The flags that name what there is, given by the names of REPORT's inputs. */
    static String parts(Map of) {
        final Map csv = [of.tables].flatten().collectEntries { [it.toString().tokenize('/').last(), it] }
        // stack is given the repaired shifts, where there are such.
        final motors = of.recorded ?: csv['shifts_xy.csv']
        final List made = [of.repaired].flatten()
        final List measured = [of.metrics].flatten() + [of.transforms].flatten().collect { "${it}/pairwise_registration_metrics.json" }
        return [
            '--reports reports',
            of.previews ? '--previews previews' : '',
            of.projections ? '--previews aip' : '',
            of.maps ? '--focal focal' : '',
            of.positions ? '--stitch stitch' : '',
            of.crops ? '--crop crop' : '',
            flag('shifts', motors),
            made.collect { flag(it.name.endsWith('.csv') ? 'shifts_clean' : 'shifts_plots', it) }.join(' '),
            flag('shifts_found', csv['shifts_found.csv']),
            flag('z_matches', csv['z_matches.csv']),
            flag('decisions', csv['stacking_decisions.csv']),
            flag('slice_config', of.config),
            measured ? "--metrics ${measured.collect { quoted(it) }.join(',')}" : '',
            of.diagnostics ? '--diagnostics diagnostics' : '',
            of.missing ? '--missing missing_slices.tsv' : '',
        ].findAll().join(' ')
    }

    private static String flag(String name, Object file) { file ? "--${name} ${quoted(file)}" : '' }

    /** Text as a shell takes it for one word. */
    static String quoted(Object text) { "'${text.toString().replace("'", "'\\''")}'" }
}
