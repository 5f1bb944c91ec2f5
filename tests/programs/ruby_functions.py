"""Functions of Ruby in the profile of a program: their names, files, lines and shares of the time."""

import shutil
import subprocess

from interpreted import check_functions, skip_where_nothing_is_read
from vocabulary import check, skip

# Each function takes as long as the loop in it says. What it took is measured, at no cost worth the name,
# where functions of milliseconds are called. How long it runs does not depend on other programs.
PROGRAM = """\
require "json"
def spend(n)
  total = 0
  i = 0
  while i < n
    total += i * i % 7 + i * 3 % 11 + i * 5 % 13
    i += 1
  end
  total
end
class Work
  def heavy
    spend(20_000)
  end
  def light
    (0...4_000).map { |x| x * x }.sort_by { |x| -x }.size
  end
  def text
    ("the quick brown fox " * 60).scan(/\\w+/).map(&:reverse).join.size
  end
end
def deep(n)
  n == 0 ? spend(300) : deep(n - 1)
end
def recursive
  30.times { deep(20) }
end
def worker(spent, stop)
  work = Work.new
  parts = [work.method(:heavy), work.method(:light), work.method(:text), method(:recursive)]
  while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
    parts.each do |part|
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      part.call
      spent[part.name] += Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
    end
  end
end
def main
  stop = 4
  results = [Hash.new(0.0), Hash.new(0.0)]
  results.map { |spent| Thread.new { worker(spent, stop) } }.each(&:join)
  puts JSON.generate(results[0].merge(results[1]) { |_, one, other| one + other })
end
main
"""

interpreter = shutil.which("ruby")
if interpreter is None:
    skip("no Ruby")
version = subprocess.run([interpreter, "-e", "print RUBY_ENGINE, RUBY_VERSION"], capture_output=True, text=True,
                         check=False).stdout
if not version.startswith(("ruby3.1.", "ruby3.3.")):
    skip("no Ruby whose structures are known")
skip_where_nothing_is_read()
profile = check_functions(interpreter, "ruby", "rb", PROGRAM, {
    ("spend", "heavy"): "spend(20_000)",
    ("spend", "deep"): "n == 0 ?",
    ("deep", "deep"): "n == 0 ?",
    ("scan", "text"): ".scan(",
}, "total += i * i % 7 + i * 3 % 11 + i * 5 % 13")
names = {l.get("function") for l in profile["locations"]}
for name in ("Work#heavy", "Work#text", "Object#recursive", "String#scan", "block in Object#recursive"):
    check(name in names, f"no function is called {name}")
