import assert from "node:assert/strict";
import { test } from "node:test";
import { forwarded } from "../src/nextedit/forwarded";

function diagnostic(line: number, severity: number) {
  const at = { line, character: 4, isEqual: () => true };
  return { range: { start: at, end: at }, severity, message: "x is not defined", source: "checker" };
}

test("errors are forwarded, in LSP's severity, with nothing but their ranges", () => {
  const found = forwarded([diagnostic(3, 1), diagnostic(7, 0)]);
  const at = { line: 7, character: 4 };
  assert.deepEqual(found, [{ range: { start: at, end: at }, severity: 1 }]);
});

test("warnings, information and hints are not forwarded", () => {
  assert.deepEqual(forwarded([diagnostic(1, 1), diagnostic(3, 2), diagnostic(7, 3)]), []);
});

test("of many errors the first hundred are forwarded", () => {
  const found = forwarded(Array.from({ length: 200 }, (_, line) => diagnostic(line, 0)));
  assert.deepEqual(found.map(({ range }) => range.start.line), Array.from({ length: 100 }, (_, line) => line));
});
