import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.ConcurrentHashMap
import java.util.zip.CRC32

/** Where the workflow's programs come from, and which they are. */
class Programs {

    private static Path project
    private static Map config = [:]
    private static String modules
    /** File → its digest. */
    private static final Map<Path, String> digests = new ConcurrentHashMap<>()

    static void start(Path projectDir, Map given, Map params) {
        project = projectDir
        config = given
        modules = params.modules
    }

    /**
     * Returns what tells one version of a program from another, as part of the key by which
     * -resume finds a task: a digest of its file, which has the version and the commit in it, or
     * of the image that it comes from. Neither depends on when or where the file was made. An image
     * that is no file has its name, as a conda environment has, which Nextflow hashes; a module has its own.
     */
    static String key(String name) {
        if (image() || config.conda?.enabled)
            return imageFile() ? digest(imageFile()) : ''
        final Path ours = project.resolve('bin').resolve(name)
        if (Files.isExecutable(ours))
            return digest(ours)
        if (modules)
            return modules
        final Path found = folders().collect { it.resolve(name) }.find { Files.isExecutable(it) }
        return found ? digest(found) : ''
    }

    /** What keeps the programs from being found, as one line; null when nothing does. */
    static String problem(List<String> names, Path work) {
        if (project.toString() =~ /["$`\\]/)
            return "${project}: Nextflow starts no programs from a folder with one of \" \$ ` \\ in its name: rename it"
        final String image = image()
        // The commands with which Nextflow enters a container name these without quotes.
        if (image && !plain(work))
            return "${work}: Nextflow cannot work in this folder with a container, for the spaces, quotes or other signs in its name: name another by -work-dir"
        if (image && !plain(project) && Files.exists(project.resolve('bin')))
            return "${project}: with a container Nextflow trips over the spaces, quotes or other signs in this name: remove ${project}/bin, an image has no use for it"
        if (imageFile())
            return Files.exists(imageFile()) ? null
                : "parameter container: no such image: ${imageFile().normalize()} (make image builds build/strata.sif)"
        final missing = absent(names)
        return missing ? "program ${missing.join(', ')}: not in ${project}/bin nor on the PATH: run make first, or give --container" : null
    }

    /** True for a path that a shell takes for one word as it stands. */
    private static boolean plain(Path path) { path.toString() ==~ /[^\s"'`$\\&;|<>()*?\[\]#~]+/ }

    /**
     * Those that no task would find. Known only where tasks run on this machine
     * and outside a container: elsewhere nothing is reported.
     */
    private static List<String> absent(List<String> names) {
        final boolean elsewhere = image() || config.conda?.enabled ||
            !((config.process?.executor ?: 'local') == 'local') || config.process?.beforeScript?.contains('module load')
        if (elsewhere)
            return []
        final all = [project.resolve('bin')] + folders()
        return names.findAll { name -> !all.any { Files.isExecutable(it.resolve(name)) } }
    }

    /** The image that containers are started from, or null. */
    private static String image() { ['apptainer', 'singularity', 'docker', 'podman'].any { config[it]?.enabled } ? config.process?.container : null }

    /** The same where it is a file: Apptainer's and Singularity's, without an address. */
    private static Path imageFile() {
        final boolean named = config.docker?.enabled || config.podman?.enabled || image()?.contains('://')
        return image() && !named ? Path.of(image()) : null
    }

    private static List<Path> folders() { System.getenv('PATH').split(':').collect { Path.of(it) } }

    /** Returns the size and the CRC-32 of a file: an image has hundreds of MB, and a run waits for this. */
    private static String digest(Path file) {
        if (!Files.isRegularFile(file))
            return Files.exists(file) ? Inputs.fingerprint(file, true) : ''
        return digests.computeIfAbsent(file) {
            final sum = new CRC32()
            final buffer = new byte[1 << 20]
            file.withInputStream { stream ->
                for (int n; (n = stream.read(buffer)) >= 0;)
                    sum.update(buffer, 0, n)
            }
            return "${Files.size(file)} ${Long.toHexString(sum.value)}".toString()
        }
    }
}
