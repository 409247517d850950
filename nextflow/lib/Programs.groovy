import java.nio.file.Files
import java.nio.file.Path

/** Where the workflow's programs come from. */
class Programs {

    /** What keeps the programs from being found, as one line; null when nothing does. */
    static String problem(List<String> names, Path project, Map config) {
        final String image = config.apptainer?.enabled || config.singularity?.enabled ? config.process?.container : null
        if (image && !image.contains('://'))
            return Files.exists(Path.of(image)) ? null
                : "parameter container: no such image: ${Path.of(image).normalize()} (make image builds build/strata.sif)"
        final missing = absent(names, project, config)
        return missing ? "program ${missing.join(', ')}: not in ${project}/bin nor on the PATH: run make first, or give --container" : null
    }

    /**
     * Those that no task would find. Known only where tasks run on this machine
     * and outside a container: elsewhere nothing is reported.
     */
    private static List<String> absent(List<String> names, Path project, Map config) {
        final boolean elsewhere = config.apptainer?.enabled || config.singularity?.enabled || config.docker?.enabled ||
            !((config.process?.executor ?: 'local') == 'local') || config.process?.beforeScript?.contains('module load')
        if (elsewhere)
            return []
        final folders = [project.resolve('bin')] + System.getenv('PATH').split(':').collect { Path.of(it) }
        return names.findAll { name -> !folders.any { Files.isExecutable(it.resolve(name)) } }
    }
}
