// lint.groovy LIB FILE...: says what Nextflow's strict parser has against scripts (.nf) and configurations (.config): a line for
// each error and each warning, and exit status 1. LIB is the folder of the workflow's classes, which the scripts name.
import groovy.lang.GroovyClassLoader
import nextflow.config.control.ConfigParser
import nextflow.script.control.ParanoidWarning
import nextflow.script.control.ScriptParser
import org.codehaus.groovy.control.CompilationUnit
import org.codehaus.groovy.control.CompilerConfiguration

def (lib, files) = [new File(args[0]), args.tail().collect { new File(it).absoluteFile }]

// The engine compiles the classes with the scripts; the parser only looks for them.
def classes = File.createTempDir('strata-lint')
addShutdownHook { classes.deleteDir() }
def unit = new CompilationUnit(new CompilerConfiguration(targetDirectory: classes), null, new GroovyClassLoader(ScriptParser.classLoader))
lib.eachFileMatch(~/.*\.groovy/) { unit.addSource(it) }
unit.compile()

def loader = new GroovyClassLoader(ScriptParser.classLoader)
loader.addURL(classes.toURI().toURL())
Thread.currentThread().contextClassLoader = loader // where the parsers look
def parsers = [nf: new ScriptParser(), config: new ConfigParser()]
files.each { parsers[it.name.tokenize('.').last()].parse(it) }
int bad = 0
parsers.each { kind, parser ->
    parser.analyze()
    parser.compiler().sources.values().sort { it.name }.each { source ->
        def place = { line, column -> "${new File(source.source.URI.path)}:${line}:${column}" }
        source.errorCollector.errors?.each { error ->
            def cause = error.cause
            println cause.hasProperty('line') ? "${place(cause.line, cause.startColumn)}: ${cause.originalMessage}" : "${source.name}: ${cause}"
            bad++
        }
        source.errorCollector.warnings?.findAll { !(it instanceof ParanoidWarning) }?.each {
            println "${place(it.context.startLine, it.context.startColumn)}: warning: ${it.message}"
            bad++
        }
    }
}
println "${files.size()} files, ${bad} ${bad == 1 ? 'problem' : 'problems'}"
System.exit(bad ? 1 : 0)
