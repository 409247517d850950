import java.nio.file.Path
import nextflow.Global

/**
 * What stands before the first task: parameters, inputs, programs and the cluster, looked at
 * in this order. Either there is help to print, or problems are one line each and the run ends
 * with exit status 2, or the rest is there.
 */
class Setup {

    /** The parameters, each in the type that the schema gives it. */
    final Map params
    /** What --help prints; null without it. */
    final String help
    final List<String> problems
    Inputs inputs
    Calls calls
    Estimate estimate
    Groups groups

    /** The folder of main.nf has the schema; programs are found from the folder that was started. */
    Setup(Map given, Path moduleDir, Path projectDir) {
        final parameters = new Parameters(moduleDir.resolve('nextflow_schema.json'))
        params = parameters.values(given)
        help = params.help ? parameters.help("nextflow run ${Global.session.workflowMetadata.scriptFile.name}", params.help) : null
        problems = help == null ? check(parameters, projectDir) : []
    }

    private List<String> check(Parameters parameters, Path projectDir) {
        final List<String> wrong = parameters.check(params)
        if (wrong)
            return wrong
        final session = Global.session
        Chain.start(params)
        try {
            inputs = new Inputs(params)
            Publishing.check(params, session.workDir)
        }
        catch (IllegalArgumentException | IOException e) {
            return [e.message]
        }
        Programs.start(projectDir, session.config, params)
        final problem = Programs.problem(Chain.programs(), session.workDir)
        if (problem && !session.workflowMetadata.stubRun)
            return [problem]
        final cluster = Cluster.problems(params, session.config, Chain.stages())
        if (cluster)
            return cluster
        Attempts.start(params)
        calls = new Calls(parameters, params)
        estimate = new Estimate(params, inputs)
        groups = new Groups(params, inputs)
        absent()
        return []
    }

    /** Takes note of the slices that the input lacks, so far. */
    void absent() {
        Attempts.absent(inputs.absent(), inputs.raw ? 'not among the raw frames' : "not in the input; ${inputs.shifts?.name} names it")
    }
}
