"""--mode full, twice: the files differ only in times, process ids and what depends on them. Latencies are
times."""

from vocabulary import check_equal, profiled, read_profile, scratch

VARYING = ("host", "cost")

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(60_000):
            text.write(f"{number * number % 9973} ")
    seen = []
    for _ in range(2):
        profiled(["gzip", "-n", "-c", "text"], "--mode", "full", "-p", "path,edge,call,method,value", env={"PATH": "/usr/bin:/bin"})
        profile = read_profile()
        for name in VARYING:
            del profile[name]
        del profile["run"]["started"], profile["run"]["duration"]
        del profile["targets"][0]["pid"]
        seen.append(profile)
    for name in seen[0]:
        check_equal(name, seen[1][name], seen[0][name])
