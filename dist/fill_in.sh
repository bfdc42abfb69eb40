#!/bin/sh
# Fills in a file for pkg-config from the environment: of this tree at the build, of a prefix at an installation.
set -eu
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
exec sed -e "s|@SIMDIR@|$SIMDIR|" -e "s|@SIMINCLUDE@|$SIMINCLUDE|" -e "s|@INCLUDEDIR@|$INCLUDEDIR|" \
    -e "s|@LIBDIR@|$LIBDIR|" -e "s|@COMMAND@|$COMMAND|" -e "s|@PYTHON@|$PYTHON|" -e "s|@VERSION@|$version|"
