# What the scripts share; sourced, not run. Every script begins from a clean clone of the repository
# on Debian 12 and installs what is missing; where everything is there it needs no network.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(g++ meson ninja-build pkg-config cmake libzydis-dev libunwind-dev liblzma-dev
    nlohmann-json3-dev libcli11-dev libfmt-dev libdw-dev libelf-dev)
test_packages=(doctest-dev python3 python3-jsonschema binutils gzip bzip2 valgrind)
lint_packages=(clang-format clang-tidy)

say() { printf '%s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Installs those of the packages that are missing.
need() {
    if ! command -v dpkg-query >/dev/null; then
        say "This is no Debian: what is needed is called there $*"
        return
    fi
    local package missing=()
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return
    say "Installing ${missing[*]}"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    # The lists of a fresh system are missing or old.
    as_root apt-get update -qq >&2
    as_root "${install[@]}" "${missing[@]}" >&2
}

# configure FOLDER [OPTION...]: options count also where the folder was configured before. A folder
# that is new is for running: debug information is a quarter of the time that compiling takes.
configure() {
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then
        meson configure "$folder" "$@" >/dev/null
    else
        meson setup "$folder" -Ddebug=false "$@" >&2
    fi
}
