import java.nio.file.Path
import java.util.concurrent.TimeUnit
import nextflow.util.Duration

/**
 * What SLURM says of its partitions, before anything is submitted: sbatch would
 * refuse a partition that does not exist, once for each task, and would keep a job
 * waiting for ever whose time limit is longer than its partition's.
 */
class Cluster {

    private static final List<String> CHOICES = ['partition', 'gpu_partition', 'short_partition', 'long_partition', 'gpu_short_partition', 'gpu_long_partition']

    /** What sinfo says of a partition: how long a job may run (null: any time), the names of the devices that its nodes have. */
    private static class Partition {
        boolean isDefault
        Duration limit
        final Set<String> devices = [] as Set
    }

    /** True when tasks are SLURM's jobs. */
    private static boolean used

    /** What keeps SLURM from running the jobs of the stages, one line each; none when it is not used. */
    static List<String> problems(Map params, Map config, List<String> stages) {
        used = config.process?.executor == 'slurm'
        if (!used)
            return []
        if (!System.getenv('PATH').split(':').any { new File(it, 'sbatch').canExecute() })
            return ['SLURM: no sbatch on the PATH: start the workflow where jobs are submitted, on a login node']
        final Map<String, Partition> partitions
        try {
            partitions = parse(answer('sinfo', '-h', '-a', '-o', '%P|%l|%G'))
            if (!partitions)
                throw new IOException('no partition')
        } catch (IOException e) {
            return ["SLURM: sinfo does not answer: ${e.message}".toString()]
        }
        final Set<String> problems = [] as LinkedHashSet
        for (String stage : stages)
            problems.addAll(ofStage(stage, params, config, partitions))
        return problems as List
    }

    private static List<String> ofStage(String stage, Map params, Map config, Map<String, Partition> partitions) {
        final String times = "${Chain.resources(stage)}_time"
        final boolean gpu = params.use_gpu && Chain.usesGpu(stage)
        Duration time = Duration.of(params[times].toString()) * (Chain.inGroups(stage) ? Groups.of(params) : 1)
        final boolean capped = params.max_time && time > Duration.of(params.max_time.toString())
        if (capped)
            time = Duration.of(params.max_time.toString())
        final List<String> names = queue(config.process?.queue, params, gpu, time) ?: partitions.findAll { it.value.isDefault }*.key
        final List<String> problems = []
        for (String name : names) {
            if (!partitions.containsKey(name))
                problems << "${chosenBy(name, gpu, params)}: SLURM has no partition ${name}: there ${partitions.size() == 1 ? 'is' : 'are'} ${partitions.keySet().join(', ')}".toString()
        }
        final List<Partition> taken = names.collect { partitions[it] }.findAll()
        if (problems || !taken)
            return problems
        final where = "partition ${names.join(',')}"
        // A quality of service may lift the limit.
        final boolean lifted = params.cluster_options =~ /(^|\s)(-q|--qos)/
        if (!lifted && taken.every { it.limit && it.limit < time }) {
            final longest = taken*.limit.max()
            problems << "parameter ${capped ? 'max_time' : times}: ${time} is longer than a job may run in ${where} (${longest}): it would wait for ever".toString()
        }
        if (gpu) {
            final lacking = devices(params).find { wanted -> taken.every { !(wanted in it.devices) } }
            if (lacking)
                problems << "parameter use_gpu: no node of ${where} has a ${lacking}: name one by gpu_partition, or give --use_gpu false".toString()
        }
        return problems
    }

    /** Partitions that a task is sent to; none: the cluster's default. */
    private static List<String> queue(Object given, Map params, boolean gpu, Duration time) {
        Object name = given
        if (given instanceof Closure) {
            final Closure choice = given.rehydrate([task: [ext: [gpu: gpu], time: time], params: params], given.owner, given.thisObject)
            choice.resolveStrategy = Closure.DELEGATE_FIRST
            try {
                name = choice.call()
            } catch (Exception ignored) {
                return [] // a configuration of the user's own, which looks at more of the task
            }
        }
        return name == null ? [] : name.toString().tokenize(',')
    }

    private static String chosenBy(String name, boolean gpu, Map params) {
        final found = CHOICES.findAll { params[it]?.toString()?.tokenize(',')?.contains(name) }
        final parameter = found.find { it.startsWith('gpu_') == gpu } ?: found.find()
        return parameter ? "parameter ${parameter}" : 'process.queue'
    }

    /** Names of the devices that a task with a GPU asks for. */
    private static List<String> devices(Map params) {
        return params.gpu_option == 'gres' ? params.gres.toString().tokenize(',').collect { it.tokenize(':=')[0] } : ['gpu']
    }

    /**
     * Ends the job in whose folder a task works, where SLURM still has one: nobody saw its end, and the task is to be repeated,
     * in another folder. Says so.
     */
    static void endLost(Path work) {
        if (!used)
            return
        try {
            final String user = System.getProperty('user.name')
            final List<String> jobs = answer('squeue', '-h', '-u', user, '-o', '%i|%Z').readLines().findAll { it.split(/\|/, 2).last().trim() == work.toString() }.collect { it.split(/\|/, 2).first().trim() }
            if (jobs) {
                answer(*(['scancel'] + jobs))
                System.err.println("strata: SLURM still ran job ${jobs.join(', ')}, whose exit status did not come to ${work} in time: it is cancelled and repeated (see exit_read_timeout)")
            }
        } catch (IOException e) {
            System.err.println("strata: SLURM does not say whether the job of ${work} still runs: ${e.message}")
        }
    }

    /** What a command of SLURM's prints. */
    private static String answer(String... command) {
        final process = new ProcessBuilder(command).start()
        process.outputStream.close()
        final out = new StringBuffer(), err = new StringBuffer()
        final List<Thread> readers = [process.consumeProcessOutputStream(out), process.consumeProcessErrorStream(err)]
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroy()
            throw new IOException('nothing in 20 s')
        }
        readers*.join()
        if (process.exitValue() != 0)
            throw new IOException(err.readLines().find { it.trim() } ?: "exit status ${process.exitValue()}")
        return out.toString()
    }

    /** Lines "name|1-06:00:00|gpu:a100:4(S:0-1),shard:8"; the default's name ends in a star. */
    static Map<String, Partition> parse(String text) {
        final Map<String, Partition> partitions = [:]
        for (String line : text.readLines()) {
            final List<String> fields = line.split(/\|/, -1)*.trim()
            if (fields.size() < 3 || !fields[0])
                continue
            final Partition partition = partitions.computeIfAbsent(fields[0] - ~/\*$/) { new Partition() }
            partition.isDefault = fields[0].endsWith('*')
            partition.limit = limit(fields[1])
            partition.devices.addAll(fields[2].replaceAll(/\([^)]*\)/, '').tokenize(',').collect { it.tokenize(':')[0] })
        }
        return partitions
    }

    /** "1-06:00:00", "4:00:00", "30:00" (minutes), "infinite": the time, or null. */
    private static Duration limit(String text) {
        final found = text =~ /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/
        if (!found)
            return null
        final List<Long> parts = (1..4).collect { (found[0][it] ?: 0) as long }
        return Duration.of((((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]) * 1000)
    }
}
