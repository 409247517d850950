// Runs Nextflow for tests, again and again in one Java process: most of the time of a short run goes into loading and
// warming up what this process has loaded already. Each line of standard input is a run: the file for its output and
// its arguments, separated by \u0001. Each line of standard output is an exit status. An empty line ends it.
import nextflow.Global
import nextflow.Nextflow
import nextflow.cli.Launcher
import nextflow.exception.AbortOperationException
import nextflow.plugin.Plugins
import nextflow.processor.TaskProcessor
import org.slf4j.LoggerFactory

class Run { static Integer exit }

// The exit of a script would end this process: it ends the run.
Nextflow.metaClass.static.exit = { int code, String message = null ->
    if (message)
        LoggerFactory.getLogger(Nextflow).with { code ? error(message) : info(message) }
    Run.exit = code
    throw new AbortOperationException((String) null)
}

// Nextflow makes that of a run's own classes the thread's, and the parent of the next one's: it would find the classes of the run before, and their state.
final ClassLoader loader = Thread.currentThread().contextClassLoader
final PrintStream replies = System.out
final PrintStream errors = System.err
System.in.withReader('UTF-8') { reader ->
    for (String line; line = reader.readLine();) {
        final words = line.split('\u0001', -1) as List
        final log = new PrintStream(new FileOutputStream(words[0]), true)
        System.setOut(log)
        System.setErr(log)
        Run.exit = null
        Thread.currentThread().contextClassLoader = loader
        TaskProcessor.errorShown.set(false) // it reports, and fails for, the first error of a process
        int status = 125
        try {
            status = new Launcher().command(words.tail() as String[]).run()
        } catch (Throwable e) {
            e.printStackTrace(log)
        } finally {
            // What the end of a process does.
            try {
                Global.session?.destroy()
                Plugins.stop()
            } catch (Throwable e) {
                e.printStackTrace(errors)
            }
            log.close()
        }
        replies.println(Run.exit == null ? status : Run.exit)
        replies.flush()
    }
}
System.exit(0)
