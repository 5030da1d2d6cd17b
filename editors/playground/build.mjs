// Bundles the page into the package that serves it.
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const page = fileURLToPath(new URL("../../mercury_lsp/http/page/", import.meta.url));

await mkdir(page, { recursive: true });
await build({
  entryPoints: [`${here}src/playground.ts`],
  outfile: `${page}playground.js`,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "eof",
  logLevel: "warning",
});
for (const name of ["index.html", "playground.css"]) await copyFile(`${here}src/${name}`, `${page}${name}`);
