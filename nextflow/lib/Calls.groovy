import nextflow.Channel

/**
 * The command lines of the processes, and what the processes say of their runs.
 *
 * A program's flags and its bytes are an input of its process: a task is found in
 * the cache when they are the same, whatever the other parameters and the dates are.
 */
class Calls {

    private final Parameters parameters
    private final Map params
    private final List outputs = []

    Calls(Parameters parameters, Map params) {
        this.parameters = parameters
        this.params = params
    }

    /** [flags, key] of a program, as a process takes them. */
    List of(String program, List flags) { [flags.findAll().join(' '), Programs.key(program)] }

    /** The key alone, of a program that a process runs besides. */
    String key(String program) { Programs.key(program) }

    /** The same of the program of a stage, whose flags are those of its images and its own. */
    List stage(String program, List more = []) { of(program, [format(Chain.levels(program), Chain.format(program)), flags(program)] + more) }

    /** The flags of a program that the parameters set. */
    String flags(String program) { parameters.flags(program, params) }

    /** The flag that a parameter sets, or nothing. */
    String flag(String name) { parameters.flag(name, params) }

    /** The flags of an image with this many pyramid levels. */
    String format(Object levels, Map given = params) { ["--n_levels ${levels}", parameters.flags('format', given)].findAll().join(' ') }

    /** The flags of the programs that mosaic stands for, as mosaic has them: it makes their images in the same pass. */
    String products() {
        return [Chain.has('aip') ? within('aip', [format(params.n_levels, Chain.explicit(params)), flags('aip')]) : '',
            Chain.has('resample') ? within('resampled', [format(Chain.levels('resample'), Chain.explicit(Chain.format('resample'))), flags('resample')]) : ''].findAll().join(' ')
    }

    /** Those of all images mosaic has anyway. */
    private static String within(String prefix, List flags) {
        return flags.findAll().join(' ').replaceAll(/--(zarr_format \S+|checksum)( |$)/, '').replaceAll(/(^| )--/, "\$1--${prefix}_")
    }

    /** Remembers the outputs of a process: report, versions and, where it has them, metrics. */
    void note(Object out) { outputs << out }

    Object reports() { mixed('report') }

    Object versions() { mixed('versions') }

    Object metrics() { mixed('metrics') }

    private Object mixed(String name) {
        return outputs.findAll { name in it.names }.inject(Channel.empty()) { all, out -> all.mix(out.getProperty(name)) }.flatten()
    }
}
