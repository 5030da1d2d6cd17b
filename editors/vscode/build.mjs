// Bundles the extension into one file, with the licences of what is in it.
import { copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  minify: true,
  platform: "node",
  target: "node20",
  external: ["vscode"],
  metafile: true,
});

const packages = new Set(Object.keys(metafile.inputs).map((file) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]));
packages.delete(undefined);
const licences = [...packages].sort().map((folder) => {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}/${file}`, "utf8") : ""}`;
});
writeFileSync("dist/LICENSES.txt", licences.join("\n\n"));
if (existsSync("../../LICENSE")) copyFileSync("../../LICENSE", "LICENSE");
