import assert from "node:assert/strict";
import { test } from "node:test";
import { forwarded, hasErrors } from "../src/nextedit/forwarded";

function diagnostic(line: number, severity: number) {
  const at = { line, character: 4, isEqual: () => true };
  return { range: { start: at, end: at }, severity, message: "x is not defined", source: "checker" };
}

test("errors come first, in LSP's severities, with nothing but their ranges", () => {
  const found = forwarded([diagnostic(3, 1), diagnostic(7, 0)]);
  const at = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 4 } });
  assert.deepEqual(found, [{ range: at(7), severity: 1 }, { range: at(3), severity: 2 }]);
});

test("information and hints are not forwarded", () => {
  assert.deepEqual(forwarded([diagnostic(3, 2), diagnostic(7, 3)]), []);
});

test("of many diagnostics the errors and the first warnings are forwarded", () => {
  const many = Array.from({ length: 200 }, (_, line) => diagnostic(line, line < 180 ? 1 : 0));
  const found = forwarded(many);
  assert.equal(found.length, 100);
  assert.deepEqual(found.map(({ range }) => range.start.line).slice(19, 22), [199, 0, 1]);
});

test("warnings alone are no errors", () => {
  assert.equal(hasErrors(forwarded([diagnostic(3, 1)])), false);
  assert.equal(hasErrors(forwarded([diagnostic(3, 1), diagnostic(7, 0)])), true);
});
