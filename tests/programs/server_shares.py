"""A server's code behind a socket read has its true share in modes burst and shadow, although only the server
knows what it reads. The share would be too small if samples ended at reads."""

import json
import os
import sys

from vocabulary import check, check_equal, profiled, read_profile, scratch

from busy_machine import lacked_processors

SERVER = os.path.abspath(sys.argv[1])


def share_of(function):
    whole = read_profile()
    for entry in whole["methods"]["entries"]:
        if whole["locations"][entry["function"]].get("function") == function:
            shares = entry["instructions"]
            return shares["share"], *shares["interval"]
    # Not seen in n samples: with 95 % its share is at most 3/n.
    return 0, 0, 3 / max(3, whole["coverage"]["samples"])


with scratch():
    for mode, count, size in (("burst", "300k", "10k"), ("shadow", "400k", "30k"), ("burst", "3k", "1M")):
        # A quarter of each request's instructions follow the read.
        options = ["-m", mode, "--overhead", "30%", "-p", "method", "--seed", "1"]
        check_equal("the server's exit status", profiled([SERVER, count, size, "25"], *options).status, 0)
        profile = read_profile()
        coverage = profile["coverage"]
        # A single replica before the bursts stands for most of the time, and says nothing by itself.
        if coverage["samples"] < 20 or lacked_processors(profile):
            print(f"-m {mode}, requests of {size}: the machine is busy, {coverage}")
            continue
        share, low, high = share_of("after_read")
        # A 95 % interval misses in one of twenty cases. Code behind a read is slow because it finds its caches cold,
        # and bursts begin at random times. So they see it some six points too often where requests are short
        # (docs/results/intervals.md), or ten where entering the kernel is expensive.
        margin = max((high - low) / 4, 0.05 if size == "1M" else 0.1)
        more = margin + 0.05
        check(low - more <= 0.25 <= high + margin,
              f"-m {mode}, requests of {size}: {share:.3f} [{low:.3f}, {high:.3f}], {json.dumps(coverage)}")
        check(high - low < 0.8, f"-m {mode}: an interval that says nothing: [{low}, {high}]")
        # A read that waits for long ends its sample. On a busy machine some of the answers are late.
        early = sum(n for why, n in coverage["ended"].items() if why.startswith("system call"))
        check(early <= max(3, coverage["samples"] * 0.2), f"{early} samples ended early: {coverage}")
