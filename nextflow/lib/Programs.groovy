import java.nio.file.Files
import java.nio.file.Path

/** Where the workflow's programs come from. */
class Programs {

    /** What keeps the programs from being found, as one line; null when nothing does. */
    static String problem(List<String> names, Path project, Path work, Map config) {
        if (project.toString() =~ /["$`\\]/)
            return "${project}: Nextflow starts no programs from a folder with one of \" \$ ` \\ in its name: rename it"
        final String image = config.apptainer?.enabled || config.singularity?.enabled ? config.process?.container : null
        // The commands with which Nextflow enters a container name these without quotes.
        if (image && !plain(work))
            return "${work}: Nextflow cannot work in this folder with a container, for the spaces, quotes or other signs in its name: name another by -work-dir"
        if (image && !plain(project) && Files.exists(project.resolve('bin')))
            return "${project}: with a container Nextflow trips over the spaces, quotes or other signs in this name: remove ${project}/bin, an image has no use for it"
        if (image && !image.contains('://'))
            return Files.exists(Path.of(image)) ? null
                : "parameter container: no such image: ${Path.of(image).normalize()} (make image builds build/strata.sif)"
        final missing = absent(names, project, config)
        return missing ? "program ${missing.join(', ')}: not in ${project}/bin nor on the PATH: run make first, or give --container" : null
    }

    /** True for a path that a shell takes for one word as it stands. */
    private static boolean plain(Path path) { path.toString() ==~ /[^\s"'`$\\&;|<>()*?\[\]#~]+/ }

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
