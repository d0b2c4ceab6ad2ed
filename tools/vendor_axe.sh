#!/bin/sh
# Vendors a version of axe-core for the tests of the site:
#     sh tools/vendor_axe.sh 4.14.1
# Needs npm.
set -eu
version=$1
target=$(cd "$(dirname "$0")/.." && pwd)/tools/site/axe
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "axe-core@$version" >/dev/null
tar -xzf "axe-core-$version.tgz"
mkdir -p "$target"
cd package
cp LICENSE LICENSE-3RD-PARTY.txt axe.min.js "$target"
echo "axe $version is in tools/site/axe."
