import java.nio.file.Files
import java.nio.file.Path

/** Where the workflow's programs come from. */
class Programs {

    /**
     * Those that no task would find. Known only where tasks run on this machine
     * and outside a container: elsewhere nothing is reported.
     */
    static List<String> absent(List<String> names, Path project, Map config) {
        final boolean elsewhere = config.apptainer?.enabled || config.singularity?.enabled || config.docker?.enabled ||
            !((config.process?.executor ?: 'local') == 'local') || config.process?.beforeScript?.contains('module load')
        if (elsewhere)
            return []
        final folders = [project.resolve('bin')] + System.getenv('PATH').split(':').collect { Path.of(it) }
        return names.findAll { name -> !folders.any { Files.isExecutable(it.resolve(name)) } }
    }
}
