#!/bin/sh
# Vendors a version of KaTeX for the site:
#     sh tools/vendor_katex.sh 0.19.1
# Needs npm. Only WOFF2 fonts are kept, which all current browsers support.
set -eu
version=$1
target=$(cd "$(dirname "$0")/.." && pwd)/docs/assets/katex
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "katex@$version" >/dev/null
tar -xzf "katex-$version.tgz"
rm -rf "$target"
mkdir -p "$target/fonts"
cp package/LICENSE package/dist/katex.min.js "$target"
cp package/dist/fonts/*.woff2 "$target/fonts"
sed -E 's/,url\([^)]*\.(woff|ttf)\) format\("[a-z]+"\)//g' \
    package/dist/katex.min.css >"$target/katex.min.css"
echo "KaTeX $version is in docs/assets/katex."
