"""gzip on a few megabytes, sampled: the output is the same, and the profile has gzip's own code."""

from vocabulary import check_saw_code_of, same_as_native, scratch

with scratch():
    with open("text", "w", encoding="ascii") as text:
        for number in range(2_000_000):
            text.write(f"{number * number % 9973} ")
    profile = same_as_native(["gzip", "-9", "-n", "-c", "text"])
    check_saw_code_of(profile, "gzip")
