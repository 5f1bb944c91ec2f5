"""shadowprof export: the tools that the formats are made for can read them: BOLT, llvm-profgen,
llvm-profdata, clang, callgrind_annotate, go tool pprof, protoc. The test prints which of them are not
installed, and tries the others."""

import gzip
import json
import os
import re
import shutil
import sys

from vocabulary import SHADOWPROF, check, check_equal, check_one_line, run, scratch

program, source = (os.path.abspath(path) for path in sys.argv[1:3])
missing = []


def tool(*names):
    """The first of these programs that is installed."""
    for name in names:
        if found := shutil.which(name):
            return found
    missing.append(names[0])
    return None


def export(form, file, *more, profile="profile.json"):
    outcome = run([SHADOWPROF, "export", "--format", form, "-o", file, *more, profile])
    check_equal(f"the exit status of export --format {form}: {outcome.stderr}", outcome.status, 0)
    with open(file, "rb") as written:
        return written.read()


def must(command, *words, **more):
    outcome = run(command, **more)
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")
    check_equal(f"the exit status of {os.path.basename(command[0])}: {said[-2000:]}", outcome.status, 0)
    for word in words:
        check(word in said, f"{os.path.basename(command[0])} does not say {word!r}: {said[-3000:]}")
    return said


def bolt():
    # The tool chooses by the file name, which must not have a number in it.
    optimiser, aggregator = tool("llvm-bolt-16", "llvm-bolt"), tool("perf2bolt", "/usr/lib/llvm-16/bin/perf2bolt")
    export("bolt", "bolt.fdata")
    export("bolt-preaggregated", "preaggregated")
    profiles = ["bolt.fdata"]
    if aggregator:
        must([aggregator, "-pa", "-p", "preaggregated", "-o", "aggregated.fdata", program])
        profiles.append("aggregated.fdata")
    for fdata in profiles if optimiser else []:
        said = must([optimiser, program, "-o", "optimised", "-data", fdata, "-reorder-blocks=ext-tsp"], "BOLT-INFO")
        found = re.search(r"BOLT-INFO: (\d+) out of (\d+) functions in the binary \(.*\) have non-empty execution profile",
                          said)
        check(found and int(found[1]) >= 4, f"{fdata}: too few functions have a profile: {said}")
        check("invalid" not in said and "stale" not in said.replace("0 stale", ""), f"{fdata}: {said}")
        must(["./optimised"], "done")


def samples_by_line(text):
    """How often each function was entered, and each of its lines executed. Of a line's blocks the most
    frequent: what tells them apart is encoded differently by different compilers."""
    functions = {}
    for line in text.splitlines():
        if head := re.fullmatch(r"(\w+):\d+:(\d+)", line):
            functions[head[1]] = lines = {"entered": int(head[2])}
        elif body := re.match(r" (\d+)(?:\.\d+)?: (\d+)(?: |$)", line):
            lines[int(body[1])] = max(lines.get(int(body[1]), 0), int(body[2]))
    return functions


def llvm():
    raw = export("llvm-profgen", "unsymbolised").decode()
    check(re.match(r"\d+\n[0-9a-f]+-[0-9a-f]+:\d+\n", raw), "llvm-profgen: no ranges")
    samples = export("llvm", "samples.txt").decode()
    ours = samples_by_line(samples)
    check({"main", "execute", "lookup", "hash", "evaluate"} <= set(ours), f"llvm: only {ours}")
    if profgen := tool("llvm-profgen-16", "llvm-profgen"):
        must([profgen, "--unsymbolized-profile=unsymbolised", "--binary=" + program, "--output=theirs.txt",
              "--format=text", "--use-offset=0"])
        with open("theirs.txt", encoding="utf-8") as file:
            theirs = samples_by_line(file.read())
        for name in ("execute", "lookup", "hash", "evaluate"):
            check_equal(f"what llvm-profgen makes of {name}", theirs.get(name), ours[name])
    if profdata := tool("llvm-profdata-16", "llvm-profdata"):
        must([profdata, "show", "--sample", "samples.txt"], "Function: lookup", "Function: evaluate")
    if clang := tool("clang-16", "clang"):
        must([clang, "-O2", "-g", "-fprofile-sample-use=samples.txt", "-Rpass-analysis=sample-profile",
              source, "-o", "by_profile"])
        must(["./by_profile"], "done")


def viewers():
    if annotate := tool("callgrind_annotate"):
        export("callgrind", "callgrind.out")
        said = must([annotate, "--inclusive=yes", "callgrind.out"], "PROGRAM TOTALS", "execute", "evaluate")
        check(re.search(r"\(9\d\.\d+%\) .*main", said), f"main does not hold what it calls: {said}")
    packed = export("pprof", "profile.pb.gz")
    raw = gzip.decompress(packed)
    check(b"instructions" in raw and b"evaluate" in raw, "pprof: names are missing")
    if protoc := tool("protoc"):
        with open("profile.pb", "wb") as file:
            file.write(raw)
        with open("profile.pb", "rb") as file:
            must([protoc, "--decode_raw"], 'evaluate', stdin=file)
    if go := tool("go"):
        home = dict(os.environ, HOME=os.getcwd(), GOCACHE=os.getcwd(), GOFLAGS="-mod=mod")
        must([go, "tool", "pprof", "-top", "-sample_index=instructions", "profile.pb.gz"], "evaluate", "execute",
             env=home)
    lines = export("collapsed", "collapsed").decode().splitlines()
    check(lines and all(re.fullmatch(r".+ \d+", line) for line in lines), "collapsed: not stacks and weights")
    shape = json.loads(export("speedscope", "speedscope.json"))
    check_equal("speedscope's samples", len(shape["profiles"][0]["samples"]), len(shape["profiles"][0]["weights"]))
    check(export("autofdo", "autofdo").decode().splitlines()[0].isdigit(), "autofdo: no number of ranges")


def annotated(said):
    """Percentages by function, as callgrind_annotate prints them."""
    rows = re.findall(r"^ *[\d,]+ \( ?([\d.]+)%\)  \S*?:(\S+?)(?: \[.*\])?$", said, re.M)
    return {name: float(percent) for percent, name in rows}


def shares_of_time(profile):
    """As the table of the report has them: of a function itself, and with all that it calls."""
    with open(profile, encoding="utf-8") as file:
        document = json.load(file)
    time, itself, with_callees = document["time"], {}, {}
    for entry in time["entries"]:
        names = [document["locations"][frame].get("function", "") for frame in entry["frames"]]
        for name in names[:1]:
            itself[name] = itself.get(name, 0) + 100 * entry["count"] / time["total"]
        for name in set(names):
            with_callees[name] = with_callees.get(name, 0) + 100 * entry["count"] / time["total"]
    return time["total"], itself, with_callees


def sampled(profile):
    """Of a sampled profile everything is time, and the sums are those of the table."""
    total, itself, with_callees = shares_of_time(profile)
    lines = export("collapsed", "of_time", profile=profile).decode().splitlines()
    check_equal("the time of all stacks", sum(int(line.rsplit(" ", 1)[1]) for line in lines), total)
    check_equal("the weights of speedscope",
                sum(json.loads(export("speedscope", "of_time", profile=profile))["profiles"][0]["weights"]), total)
    for weight in ("time", "instructions"):
        text = export("callgrind", "callgrind.out", "--weight", weight, profile=profile).decode()
        check("calls=0" not in text, f"{weight}: a call is told of as none")
        if annotate := tool("callgrind_annotate"):
            own = annotated(must([annotate, "--auto=no", "--threshold=100", "callgrind.out"]))
            check(abs(sum(own.values()) - 100) < 0.5, f"{weight}: what functions cost themselves sums up to {own}")
    if annotate := tool("callgrind_annotate"):
        export("callgrind", "callgrind.out", profile=profile)
        for option, shares in (("--inclusive=no", itself), ("--inclusive=yes", with_callees)):
            said = must([annotate, "--auto=no", "--threshold=100", option, "callgrind.out"])
            for name, percent in annotated(said).items():
                if name in shares:
                    check(abs(percent - shares[name]) < 0.1, f"{option}: {name} has {percent} %, not {shares[name]} %")
    if go := tool("go"):
        export("pprof", "profile.pb.gz", profile=profile)
        must([go, "tool", "pprof", "-top", "profile.pb.gz"], "Type: time")


with scratch():
    check_equal("the exit status", run([SHADOWPROF, "run", "-q", "-m", "full", "--limit", "0", "-o", "profile.json",
                                        "-p", "context,path,edge,call,method", "--", program]).status, 0)
    bolt()
    llvm()
    viewers()
    busy = ["/usr/bin/python3", "-c", "print(sum(i * i for i in range(5_000_000)))"]
    check_equal("the exit status of a burst run", run([SHADOWPROF, "run", "-q", "-m", "burst", "--overhead", "20%",
                                                       "-o", "burst.json", "--", *busy]).status, 0)
    for form in ("collapsed", "speedscope", "pprof", "callgrind"):
        export(form, "of_a_burst", profile="burst.json")
    check_equal("the exit status of a sampled run", run([SHADOWPROF, "run", "-q", "-o", "sampled.json", "--",
                                                         *busy]).status, 0)
    sampled("sampled.json")
    for status, arguments in ((2, ["--format", "absent", "profile.json"]), (2, ["profile.json"]),
                              (2, ["--format", "bolt", "--weight", "time", "profile.json"]),
                              (2, ["--format", "pprof", "--weight", "absent", "profile.json"]),
                              (1, ["--format", "pprof", "--weight", "time", "profile.json"]),
                              (1, ["--format", "pprof", "absent.json"]),
                              (1, ["--format", "bolt", "--module", "absent.so", "profile.json"])):
        outcome = run([SHADOWPROF, "export", *arguments])
        check_equal(f"the exit status of export {arguments}", outcome.status, status)
        check_one_line(outcome)
    if missing:
        print("not installed, so not tried:", ", ".join(missing))
