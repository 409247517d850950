import java.nio.file.Files
import java.nio.file.Path

/** How results come from the work folder to outdir. */
class Publishing {

    /** Throws an IllegalArgumentException when hard links are wanted where there can be none. */
    static void check(Map params, Path work) {
        if (params.publish_mode != 'link')
            return
        final Path results = Path.of(params.outdir.toString()).toAbsolutePath()
        if (store(results) != store(work.toAbsolutePath()))
            throw new IllegalArgumentException("parameter publish_mode: link makes hard links, and ${params.outdir} is on another file system than the work folder ${work}: give copy, move or symlink, or put both on one (-work-dir)")
    }

    /** The file system that a folder is on, or will be. */
    private static Object store(Path folder) {
        Path there = folder
        while (!Files.exists(there))
            there = there.parent
        return Files.getFileStore(there)
    }
}
