"""Packs the conformance suites of the NGFF specification into suites.json.gz, which the tests of pkg/ngff read.

    python3 pkg/ngff/testdata/suites.py CHECKOUT    a clone of github.com/ome/ngff-spec with its branches 0.4 and 0.5

Each case has the version, its name, the attributes, whether they are valid, and whether the suite is the strict one, in which
what the specification recommends counts as well. The suites are under the licence in suites.LICENSE.
"""

import gzip
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def git(*args):
    return subprocess.run(["git", "-C", sys.argv[1], *args], check=True, capture_output=True, text=True).stdout


def names(branch, folder):
    return git("ls-tree", "-r", "--name-only", "-z", branch, folder).split("\0")[:-1]


def old(branch, version):
    """Up to 0.5 a file has a list of cases."""
    for name in names(branch, "tests"):
        if not name.endswith("_suite.json"):
            continue
        for k, test in enumerate(json.loads(git("show", f"{branch}:{name}"))["tests"]):
            at = test.get("formerly") or str(k)
            yield {"version": version, "name": f"{version}/{os.path.basename(name)[:-11]}/{at}", "strict": "strict" in name,
                   "valid": test["valid"], "attributes": test["data"]}


def new(branch, version):
    """From 0.6 on each case is a file."""
    for name in names(branch, "tests/attributes"):
        data = json.loads(git("show", f"{branch}:{name}"))
        case = data.pop("_conformance", {})
        yield {"version": version, "name": f"{version}/{name.removeprefix('tests/attributes/')}", "strict": case.get("strict", False),
               "valid": case.get("valid", True), "attributes": data}


def ref(name):
    """A branch of the clone, or of its origin."""
    refs = git("for-each-ref", "--format=%(refname)").split()
    return next(r for r in (f"refs/heads/{name}", f"refs/remotes/origin/{name}") if r in refs)


cases = [*old(ref("0.4"), "0.4"), *old(ref("0.5"), "0.5"), *new(ref("main"), "0.6")]
with open(os.path.join(HERE, "suites.json.gz"), "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
    z.write(json.dumps(cases, indent=0, sort_keys=True).encode())
text = git("show", f"{ref('main')}:index.md")
with open(os.path.join(HERE, "suites.LICENSE"), "w") as f:
    f.write("suites.json.gz is taken from the NGFF specification (github.com/ome/ngff-spec), whose licence says:\n\n" + text[text.index("## License"):].strip() + "\n")
print(len(cases), "cases")
