# Shared by the scripts, which source it. Every script starts from a clean clone of the repository on Debian 12 and
# installs the packages that are missing. If none are missing, it needs no network.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(g++ meson ninja-build pkg-config cmake libzydis-dev libunwind-dev liblzma-dev
    libcli11-dev libfmt-dev libdw-dev libiberty-dev libelf-dev zlib1g-dev)
test_packages=(doctest-dev nlohmann-json3-dev python3 python3-jsonschema binutils gzip bzip2 valgrind)
format_packages=(clang-format)
tidy_packages=(clang-tidy)

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
        say "This is not Debian. The packages that are needed are called there: $*"
        return
    fi
    local package missing=()
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return
    say "Installing ${missing[*]}"
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    # A fresh system has no package lists, or old ones.
    as_root apt-get update -qq >&2
    as_root "${install[@]}" "${missing[@]}" >&2
}

# configure FOLDER [OPTION...]: the options also count for a folder that was configured before. A new folder is built
# without debug information, which would take a quarter of the compile time.
configure() {
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then
        meson configure "$folder" "$@" >/dev/null
    else
        meson setup "$folder" -Ddebug=false "$@" >&2
    fi
}
