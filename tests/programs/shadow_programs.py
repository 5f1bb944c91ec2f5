"""--mode shadow: programs do what they do without shadowprof, although replicas of them come and go, and the
profile is of their own code."""

from vocabulary import check, check_equal, check_saw_code_of, same_as_native, scratch, threaded_python

from busy_machine import of_other_reasons

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(2_000_000):
            text.write(f"{number * number % 9973} ")
    for code, command in (
        ("gzip", ["gzip", "-9", "-n", "-c", "text"]),
        ("bzip2", ["bzip2", "-c", "text"]),
        ("python", ["/usr/bin/python3", "-c", threaded_python(1_500_000)]),
    ):
        options = ["--mode", "shadow", "--overhead", "20%", "--sample-size", "1M"]
        profile = same_as_native(command, *options)
        check_equal("the mode", profile["run"]["mode"], "shadow")
        warnings = profile["run"].get("warnings", [])
        check(not of_other_reasons(warnings), f"{code}: {warnings}")
        # The number depends on how idle the machine is.
        check(profile["cost"]["forks"] >= 1, f"{code}: {profile['cost']}")
        check_saw_code_of(profile, code, rf"{code}.*", r"libbz2.*")
