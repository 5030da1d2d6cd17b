// Runs the tests of those parts that need no editor.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const outdir = mkdtempSync(join(tmpdir(), "mercury-"));
try {
  const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ entryPoints, outdir, bundle: true, platform: "node", target: "node20", sourcemap: "inline" });
  const files = readdirSync(outdir).map((name) => join(outdir, name));
  process.exitCode = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(outdir, { recursive: true });
}
