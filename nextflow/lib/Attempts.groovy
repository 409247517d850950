import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentSkipListMap
import java.util.concurrent.atomic.AtomicReference

/**
 * What a task is told, and what happens when it fails.
 *
 *   exit 1, 104, 130-145, none   again, max_retries times; 255 too: Apptainer could not start
 *   exit 4                       once more without the GPU, unless require_gpu
 *   exit 2                       the run stops
 *   exit 3                       the run stops; with allow_missing_slices it goes on
 *
 * It goes on without a slice, that is: where there is one of a kind (the stack)
 * the run stops all the same.
 *
 * The flags are made here and not in the process script, because how a result is
 * computed (GPU, threads, memory) does not change it: Nextflow hashes the text of
 * a script and the params that it names, so the same slice is found in the cache
 * whatever machine it was computed on.
 */
class Attempts {

    private static Map params = [:]
    /** Task → attempt at which its GPU failed. */
    private static final Map<String, Integer> withoutGpu = new ConcurrentHashMap<>()
    /** The stages without which there is no slice, in their order; what others make are pictures of it. */
    private static final List<String> CHAIN = ['INPUT', 'MOSAIC', 'RESAMPLE', 'FOCAL', 'FLATFIELD', 'STITCH', 'BEAM_PROFILE', 'CROP', 'ATTENUATION', 'NORMALIZE', 'INTERPOLATE']
    /** Slice and stage → why it is missing; of a slice the first cause first. */
    private static final Map<String, List<String>> missing = new ConcurrentSkipListMap<>()
    /** The task that ended the run, if one did: process, tag, exit status and reason. */
    private static final AtomicReference<List<String>> stopped = new AtomicReference<>()
    /** Its lines on standard error begin so. */
    private static final OWN = ~/(mosaic|aip|resample|focal|flatfield|stitch|beam-profile|crop|attenuation|normalize|shifts|slices|common-space|interpolate|register|manual|stack|bias-field|align|preview|qc-report): (?!warning: ).*/

    static void start(Map given) { params = given }

    /** Notes slices that the shifts name and the input does not have. */
    static void absent(Collection<String> names, String why) { names.each { lacks('INPUT', it, '-', why) } }

    /** Notes that a slice which is missing is not made up for, and why. */
    static void notInterpolated(String name, String why) { lacks('INTERPOLATE', name, '-', why) }

    /** Slices that are missing, and were made from those beside them. */
    private static final Set<String> interpolated = Collections.synchronizedSet(new TreeSet<>())

    static void madeUp(String name) { interpolated << Inputs.slice(name) }

    static Set<String> interpolated() { interpolated }

    private static void lacks(String process, String tag, String status, String reason) {
        final int order = CHAIN.indexOf(process)
        final String key = [Inputs.slice(tag), order < 0 ? CHAIN.size() : order, process, tag].join(' ')
        missing[key] = [process, tag, status, reason]
    }

    /** A parameter that changes how, but not what, a task computes. */
    static Object param(String name) { params[name] }

    /** True when this attempt of the task may use a GPU. */
    static boolean gpu(task) { params.use_gpu && !withoutGpu.containsKey(key(task)) }

    /**
     * How many tasks of a process run at once, for the directive maxForks; null: as many as there is room for. A limit of a
     * stage with a GPU path is that of the GPU. Directives are read before the parameters are checked, which may be text.
     */
    static Integer forks(String stage, Map given) {
        final limit = given["${stage}_max_forks".toString()]
        final boolean counts = !Chain.usesGpu(stage) || given.use_gpu.toString() == 'true'
        return counts && limit.toString().isInteger() ? limit as Integer : null
    }

    /** The flags that every stage with a GPU path has. */
    static String flags(task) {
        final boolean gpu = gpu(task)
        final List<String> flags = [gpu ? '--use_gpu' : '--no-use_gpu']
        if (gpu && params.require_gpu)
            flags << '--require_gpu'
        if (gpu && params.gpu_mem != null)
            flags << "--gpu_mem ${params.gpu_mem}".toString()
        flags << host(task)
        return flags.join(' ')
    }

    /** The flags of a stage that computes on the CPU only. */
    static String host(task) { (params.missing_chunks == 'warn' ? '' : "--missing_chunks ${params.missing_chunks} ") + share(task) }

    /** The flags of a program that never uses a GPU: the task's CPUs and memory, reading, writing. */
    static String share(task) {
        final List<String> flags = []
        flags << "--threads ${task.cpus}".toString()
        if (task.memory)
            flags << "--mem ${(task.memory.toBytes() * (params.mem_fraction as double) / 1048576) as long}MiB".toString()
        if (params.backend != 'auto')
            flags << "--backend ${params.backend}".toString()
        if (params.sync)
            flags << '--sync'
        return flags.join(' ')
    }

    /** The errorStrategy of a process that the run can do without for one slice. */
    static String slice(task) { after(task, true) }

    /** The errorStrategy of every other process. */
    static String next(task) { after(task, false) }

    /** Nextflow may ask twice about one failure. */
    private static String after(task, boolean ofSlice) {
        final String what = strategy(task, ofSlice)
        if (what in ['terminate', 'finish'])
            stopped.compareAndSet(null, row(task))
        return what
    }

    private static String strategy(task, boolean ofSlice) {
        final int status = task.exitStatus instanceof Integer ? task.exitStatus : Integer.MAX_VALUE
        final int attempt = task.attempt as int
        final Integer cpuSince = withoutGpu[key(task)]
        if (status == 2)
            return 'terminate'
        if (status == 3)
            return giveUp(task, status, ofSlice, 'terminate')
        if (status == 4) {
            if (params.require_gpu || !params.use_gpu || (cpuSince != null && cpuSince != attempt))
                return 'terminate'
            withoutGpu[key(task)] = attempt
            return 'retry'
        }
        if (status == 1 || status == 104 || status in 130..145 || status == 255 || status == Integer.MAX_VALUE) {
            if (status == Integer.MAX_VALUE)
                Cluster.endLost(task.workDir as Path)
            final int failures = attempt - (cpuSince == null ? 0 : 1)
            return failures <= (params.max_retries as int) ? 'retry' : giveUp(task, status, ofSlice, 'finish')
        }
        return 'terminate'
    }

    private static String giveUp(task, int status, boolean ofSlice, String otherwise) {
        if (!ofSlice || !params.allow_missing_slices)
            return otherwise
        final String process = row(task)[0]
        final List<String> names = Groups.names(task.tag)
        names.eachWithIndex { name, i -> lacks(process, name, *row(task, names.size() > 1 ? name : null).drop(2)) }
        return 'ignore'
    }

    /** Rows of process, slice, exit status and reason for all that was skipped, slice by slice. */
    static List<List<String>> missing() { missing.values() as List }

    /** The task that ended the run; null when none did. */
    static List<String> stopped() { stopped.get() }

    /** Of a task that does several slices, one of them may be named. */
    private static List<String> row(task, String name = null) {
        final boolean known = task.exitStatus instanceof Integer && task.exitStatus != Integer.MAX_VALUE
        return [(task.process as String).tokenize(':').last() - ~/_ALONE$/, (task.tag ?: '') as String, known ? task.exitStatus as String : '-', reason(task, known ? task.exitStatus as int : 0, name)]
    }

    /** The slices that there are none of, by name, each once. */
    static Set<String> slices() { missing().findAll { it[0] in CHAIN || !Chain.last() }.collect { Inputs.slice(it[1]) } as LinkedHashSet }

    /** The same as lines of a table with tabs, under a heading; empty when nothing was skipped. */
    static List<String> table() {
        return missing ? ([['process', 'slice', 'exit', 'reason']] + missing())*.join('\t') : []
    }

    /**
     * Why a task failed, from what it wrote to standard error. A program that ends by itself
     * says so last, in a line that begins with its name; a container or a scheduler may
     * have something to add. One that was killed says nothing: its last line is a warning
     * or how far it was.
     */
    private static String reason(task, int status, String name) {
        try {
            final Path log = (task.workDir as Path).resolve('.command.err')
            final List<String> lines = Files.readAllLines(log)*.trim().findAll { it }*.replace('\t', ' ')
            // Where a program does many, what it says of one begins with the line of its list.
            final int line = name == null ? 0 : Groups.names(task.tag).indexOf(name) + 1
            final String ofOne = lines.find { it.contains(": slices.tsv:${line}: ") }?.replace("slices.tsv:${line}: ", '')
            final String own = ofOne ?: lines.reverse().find { it ==~ OWN }
            if (status in 129..192 && !(status in [130, 143] && own))
                return "ended by signal ${status - 128}${status == 137 ? ' (KILL: more memory than it was granted, or time?)' : ''}"
            return own ?: (lines ? lines.last() : 'no message')
        } catch (Exception ignored) {
            return 'no message'
        }
    }

    private static String key(task) { "${task.process} ${task.index}".toString() }
}
