import assert from "node:assert/strict";
import { test } from "node:test";
import { known } from "../src/nextedit/known";

function highlight(line: number, kind?: number) {
  const at = { line, character: 4, isEqual: () => true };
  return { range: { start: at, end: at }, kind };
}

test("reads and writes are forwarded in LSP's kinds, with nothing but their ranges", () => {
  const at = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 4 } });
  assert.deepEqual(known([highlight(3, 2), highlight(7, 1)]), [
    { range: at(3), kind: 3 },
    { range: at(7), kind: 2 },
  ]);
});

test("highlights by the text alone are not forwarded", () => {
  assert.deepEqual(known([highlight(3, 0), highlight(7)]), []);
  assert.equal(known([highlight(3, 0), highlight(7, 1)]).length, 2);
});
