// `stylua --check` for machines that have Node but not the stylua program: formats with StyLua's WASM build.
//
//   node stylua.mjs [--write] FOLDER    exits with 1 if a file is not formatted as FOLDER/.stylua.toml says

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Config, IndentType, LuaVersion, OutputVerification, formatCode } from "@johnnymorganz/stylua";

const write = process.argv[2] === "--write";
const folder = process.argv.at(-1);

/** Settings by name; our file is flat, so that no parser of TOML is needed. */
function settings(path) {
  const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
  return Object.fromEntries(lines.map((line) => line.split(" = ").map((part) => part.replaceAll('"', ""))));
}

/** StyLua's configuration; it fails for a setting that it does not know. */
function configured({ syntax, column_width, indent_type, indent_width, ...unknown }) {
  if (Object.keys(unknown).length > 0) throw new Error(`unknown settings: ${Object.keys(unknown)}`);
  const config = Config.new();
  config.syntax = LuaVersion[syntax];
  config.column_width = Number(column_width);
  config.indent_type = IndentType[indent_type];
  config.indent_width = Number(indent_width);
  return config;
}

let wrong = 0;
for (const name of readdirSync(folder, { recursive: true }).filter((each) => each.endsWith(".lua")).sort()) {
  const path = join(folder, name);
  const source = readFileSync(path, "utf8");
  const config = configured(settings(join(folder, ".stylua.toml"))); // formatting uses it up
  const formatted = formatCode(source, config, undefined, OutputVerification.Full);
  if (formatted === source) continue;
  if (write) writeFileSync(path, formatted);
  else console.error(`${path} is not formatted: run make format`);
  wrong += 1;
}
process.exitCode = wrong > 0 && !write ? 1 : 0;
