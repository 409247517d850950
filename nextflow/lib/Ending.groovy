import java.nio.file.Files
import java.nio.file.Path
import nextflow.Global

/** What a run says when it ends: its results, what is missing and why, what stopped it. */
class Ending {

    private final Map params

    Ending(Map params) { this.params = params }

    void tell() {
        final of = Global.session.workflowMetadata
        final Path table = nextflow.Nextflow.file("${params.outdir}/pipeline_info/missing_slices.tsv", glob: false) as Path
        Files.deleteIfExists(table)
        if (of.success) {
            say "strata: ${of.stats.succeedCount} tasks run, ${of.stats.cachedCount} from the cache"
            Chain.results().each { what, where -> say "  ${what.padRight(12)}${params.outdir}/${where}" }
        }
        Faulty.lines().each { say it }
        // Last, so that it is read: what failed, and why.
        if (Attempts.missing())
            missing(table)
        final stopped = Attempts.stopped()
        if (stopped)
            say "strata: stopped by ${stopped[0]}${stopped[1] ? " (${stopped[1]})" : ''}: ${exit(stopped[2])}${stopped[3]}"
    }

    private static void missing(Path table) {
        final missing = Attempts.missing()
        final slices = Attempts.slices()
        final made = Attempts.interpolated()
        Files.createDirectories(table.parent)
        table.text = Attempts.table().collect { it + '\n' }.join('')
        final rest = missing.any { it[0] == 'REGISTER' } ? 'transforms or pictures' : 'pictures'
        final what = slices ? "${slices.size()} ${slices.size() == 1 ? 'slice' : 'slices'} missing (${slices.join(', ')})${made ? "; made up for by interpolation: ${made.join(', ')}" : ''}" : "no slice missing, but ${rest} of some"
        say "strata: ${what}, also listed in ${table}:"
        missing.each { say "  ${it[1]}: ${it[0]}: ${exit(it[2])}${it[3]}" }
    }

    /** Beside the progress of an engine that shows one. */
    private static void say(Object text) { Global.session.printConsole(text.toString(), true) }

    private static String exit(String status) { status == '-' ? '' : "exit ${status}: " }

    /** Why no slice is left for the stack, as one line; null when the reason was said. */
    String nothingLeft(Inputs inputs) {
        if (Attempts.stopped())
            return null
        if (params.watch && !inputs.count())
            return "no slice appeared in ${params.raw} for ${params.watch_idle}"
        final missing = Attempts.missing().findAll { it[0] != 'INPUT' }
        if (!missing)
            return null
        return missing.collect { Inputs.slice(it[1]) }.unique().size() >= inputs.count()
            ? "no slice is left: all ${inputs.count()} failed, the first with: ${missing[0][3]}"
            : "no slice is left: none of the mosaics that stitch_estimate_mosaics chose is, the first failed with: ${missing[0][3]}"
    }
}
