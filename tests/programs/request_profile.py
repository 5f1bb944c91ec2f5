"""A profile says what requests cost: of two kinds, of which one takes three times as long, in time and in
instructions, by whichever the thread-local variable is published: by the program, or by a library that is loaded
late. Rules tell events apart by it, and pprof has it as labels. What is published by mistake is not believed,
and where nothing is published there is nothing."""

import gzip
import math
import os
import sys

from vocabulary import SHADOWPROF, check, check_equal, profiled, read_profile, run, scratch

publishing, program, old, described, nonsense = (os.path.abspath(path) for path in sys.argv[1:6])
SECONDS = "3"
SERVES = {"/cheap": "serve_cheap", "/dear": "serve_dear"}
RULE = 'served: entry in function serve_* => count by attribute "http.route"'


def route_of(entry):
    return entry["attributes"].get("http.route")


def shares(profile, count_of, total):
    by_route = {}
    for e in profile["requests"]["entries"]:
        by_route[route_of(e)] = by_route.get(route_of(e), 0) + count_of(e)
    known = total["total"] - total["unknown"]
    return {route: count / known for route, count in by_route.items() if count > 0}


def check_share(what, share, expected, samples):
    """To five standard deviations, as samples tell: on a busy machine there are few."""
    margin = 0.03 + 5 * math.sqrt(expected * (1 - expected) / max(samples, 1))
    check(abs(share - expected) < margin, f"{what}: {share:.3f} of {samples}, expected {expected:.3f}")


def check_requests(profile, stdout):
    cheap, cheap_seconds, dear, dear_seconds = (float(n) for n in stdout.split())
    requests = profile["requests"]
    known = requests["total"] - requests["unknown"]
    check(known > 0.5 * requests["total"], f"{known} of {requests['total']} ns are known")
    in_time = shares(profile, lambda e: e["count"], requests)
    looks = requests["samples"] / 2  # some stand for others
    check_share("/dear in time", in_time.get("/dear", 0), dear_seconds / (cheap_seconds + dear_seconds), looks)
    check_share("outside of requests in time", in_time.get(None, 0), 0.05, looks)
    executed = shares(profile, lambda e: e["instructions"]["count"], requests["instructions"])
    samples = requests["instructions"]["samples"] / 2  # they are not of one weight
    check_share("/dear in instructions", executed.get("/dear", 0), 3 * dear / (3 * dear + cheap), samples)
    right = wrong = 0
    for e in requests["entries"]:
        functions = [profile["locations"][frame].get("function") for frame in e["frames"]]
        right += e["count"] * (SERVES.get(route_of(e)) in functions)
        wrong += e["count"] * any(SERVES[route] in functions for route in SERVES if route != route_of(e))
    check(right > 0.8 * known and wrong < 0.05 * known, f"of {known} ns {right} are in the function of their "
          f"request, and {wrong} in another's")


def labels_of(pprof):
    """The strings that are there."""
    with gzip.open(pprof) as file:
        return file.read()


def check_rule(profile):
    counts = {e.get("attributes"): e["count"] for e in profile["rules"]["entries"]}
    told = counts.get("http.route /dear", 0) + counts.get("http.route /cheap", 0)
    check(told > 0.3 * sum(counts.values()), f"the rule tells apart {counts}")


with scratch():
    for command, *library in ([publishing], [program, old], [program, described]):
        outcome = profiled([command, SECONDS, "200", "2", *library], "-p", "time,request,rule", "--rule", RULE)
        check_equal(f"the exit status: {outcome.stderr}", outcome.status, 0)
        profile = read_profile()
        check("requests" in profile, f"no requests of {command} {library} are seen")
        check_requests(profile, outcome.stdout)
        check_rule(profile)
    report = run([SHADOWPROF, "report", "profile.json"]).stdout.decode()
    check("Requests (" in report and "/dear" in report, report)
    check_equal("the export", run([SHADOWPROF, "export", "--format", "pprof", "-o", "pprof.gz", "profile.json"]).status, 0)
    strings = labels_of("pprof.gz")
    for word in (b"http.route", b"/dear", b"span id", b"trace id"):
        check(word in strings, f"pprof does not have {word}")
    outcome = profiled([program, "1", "1000", "2", nonsense])
    check_equal(f"the exit status: {outcome.stderr}", outcome.status, 0)
    believed = [e for e in read_profile()["requests"]["entries"] if e["attributes"] or e["span"] or e["trace"]]
    check_equal("what is believed of nonsense", believed, [])
    outcome = profiled([program, "1", "200", "2"])
    check("requests" not in read_profile(), "requests are seen where none are published")
