#!/bin/sh
# What `make install` does. Usage: install.sh BUILT-FOLDER PREFIX [DESTDIR]
# Each file is made beside its place and moved there: a library that is overwritten in place ends whoever runs with it.
set -eu
built=$1 prefix=$2 to=${3:-}$2
cd "$(dirname "$0")/.."
umask 022

# put MODE FILE PLACE
put() {
    mkdir -p "$(dirname "$to/$3")"
    install -m "$1" "$2" "$to/$3.new.$$"
    mv -f "$to/$3.new.$$" "$to/$3"
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
aclshim=$built/release/aclshim
export SIMDIR="$prefix/lib/aclshim/sim" SIMINCLUDE="$prefix/lib/aclshim/sim/include" INCLUDEDIR="$prefix/include" \
    LIBDIR="$prefix/lib" COMMAND="$prefix/bin/aclshim" PYTHON="$prefix/share/aclshim/python"

# The shim first: a command of one version never finds a library of an older one.
put 755 "$built/release/libaclshim.so" lib/libaclshim.so
put 755 "$aclshim" bin/aclshim
put 644 include/aclshim.h include/aclshim.h
put 644 python/aclshim.py share/aclshim/python/aclshim.py
put 755 "$built/sim/libascendcl.so" lib/aclshim/sim/libascendcl.so
ln -sfn libascendcl.so "$to/lib/aclshim/sim/libacl_rt.so"
for header in include/acl/*.h; do
    put 644 "$header" "lib/aclshim/sim/$header"
done
for package in aclshim aclshim-sim; do
    sh dist/fill_in.sh <"dist/$package.pc.in" >"$made/$package.pc"
    put 644 "$made/$package.pc" "lib/pkgconfig/$package.pc"
done
"$aclshim" completions man "$made/man" >/dev/null
for page in "$made"/man/*; do
    put 644 "$page" "share/man/man1/$(basename "$page")"
done
for shell in bash zsh fish; do
    "$aclshim" completions "$shell" >"$made/$shell"
done
put 644 "$made/bash" share/bash-completion/completions/aclshim
put 644 "$made/zsh" share/zsh/site-functions/_aclshim
put 644 "$made/fish" share/fish/vendor_completions.d/aclshim.fish
echo "installed: $to/bin/aclshim"
