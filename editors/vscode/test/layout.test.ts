import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces } from "../src/nextedit/diff";
import { expanded, layout } from "../src/nextedit/layout";

const drawn = (old: string, text: string) => layout(old, pieces(old, text));

test("a word is drawn behind the word that it replaces", () => {
  assert.deepEqual(drawn("return count", "return total"), {
    removed: [[7, 12]],
    inline: [{ at: 12, text: "total" }],
    blocks: [],
  });
});

test("new lines are drawn as lines and the old ones stay as they are", () => {
  assert.deepEqual(drawn("a\nb", "a\nnew\nother\nb"), {
    removed: [],
    inline: [],
    blocks: [{ first: 1, last: 1, place: "above", lines: ["new", "other"] }],
  });
  assert.deepEqual(drawn("a", "a\nnew").blocks, [{ first: 0, last: 0, place: "below", lines: ["new"] }]);
});

test("removed lines are drawn in place alone, without the space around them", () => {
  assert.deepEqual(drawn("a\n  b b\nc", "a\nc"), { removed: [[4, 7]], inline: [], blocks: [] });
});

test("a line that becomes several is drawn again as a whole, and all of it goes", () => {
  assert.deepEqual(drawn("  x = f(a)", "  x = f(\n    a,\n  )"), {
    removed: [[2, 10]],
    inline: [],
    blocks: [{ first: 0, last: 0, place: "beside", lines: ["  x = f(", "    a,", "  )"] }],
  });
});

test("a line with many changes is drawn again as a whole", () => {
  const old = "move(left_x, same, to_x, speed, from_y, at, left_z)";
  const text = "move(right_x, same, by_x, speed, into_y, at, right_z)";
  const { inline, blocks, removed } = drawn(old, text);
  assert.deepEqual([inline, blocks], [[], [{ first: 0, last: 0, place: "beside", lines: [text] }]]);
  assert.deepEqual(removed, [[0, old.length]]);
});

test("changes of different lines are drawn each in its own", () => {
  const { inline, blocks } = drawn("f(a)\nkeep\ng(a)", "f(b)\nkeep\ng(\n  b)");
  assert.deepEqual(inline, [{ at: 3, text: "b" }]);
  assert.deepEqual(blocks, [{ first: 2, last: 2, place: "beside", lines: ["g(", "  b)"] }]);
});

test("an inserted line does not draw the changed line below it again", () => {
  const { inline, blocks } = drawn("a = 1\nreturn a", "b = 2\na = 1\nreturn b");
  assert.deepEqual(blocks, [{ first: 0, last: 0, place: "above", lines: ["b = 2"] }]);
  assert.deepEqual(inline, [{ at: 14, text: "b" }]);
});

test("tabs end at their stops", () => {
  assert.equal(expanded("\ta\tb", 4), "    a   b");
});
