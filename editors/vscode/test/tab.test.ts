import assert from "node:assert/strict";
import { test } from "node:test";
import { direction, hintLine, tabMeaning } from "../src/nextedit/tab";

test("Tab jumps to an edit and applies it there", () => {
  assert.equal(tabMeaning({ line: 0, before: "def f(total", hasJumped: false }, [4, 5]), "jump");
  assert.equal(tabMeaning({ line: 5, before: "    return ", hasJumped: true }, [4, 5]), "apply");
  assert.equal(tabMeaning({ line: 4, before: "x = 1", hasJumped: false }, [4, 5]), "apply");
});

test("Tab indents in the indentation of a line unless the jump went there", () => {
  assert.equal(tabMeaning({ line: 0, before: "    ", hasJumped: false }, [4, 5]), "indent");
  assert.equal(tabMeaning({ line: 4, before: "", hasJumped: false }, [4, 5]), "indent");
  assert.equal(tabMeaning({ line: 4, before: "    ", hasJumped: true }, [4, 5]), "apply");
});

test("an edit is above, below or in view", () => {
  assert.equal(direction([3, 3], [[10, 40]]), "above");
  assert.equal(direction([41, 41], [[10, 40]]), "below");
  assert.equal(direction([9, 10], [[10, 40]]), "here");
  assert.equal(direction([20, 20], [[10, 15], [30, 50]]), "here");
});

test("the cursor's line points to an edit out of view, or one at the edge where the edit is", () => {
  assert.equal(hintLine("below", 20, [[10, 40]]), 20);
  assert.equal(hintLine("below", 2, [[10, 40]]), 39);
  assert.equal(hintLine("above", 60, [[10, 40]]), 15);
  assert.equal(hintLine("above", 60, [[10, 12]]), 12);
});
