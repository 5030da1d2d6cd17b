import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, pieces } from "../src/nextedit/diff";

const DIFFERENT: readonly (readonly [string, string])[] = [
  ["", "a"],
  ["a", ""],
  ["a\nb", "a\nnew\nb"],
  ["    a\n    b", "    a\n    new\n    b"],
  ["a\nb", "a\nb\nc"],
  ["a\nb\nc", "a\nc"],
  ["a\nb", "a"],
  ["f(a)", "f(\n  a,\n  b,\n)"],
  ["def f(count):\n    return count", "def f(total):\n    return total"],
  ["x = 1\ny = 2\nz = 3", "one\ntwo"],
  ["\n\n", "\n"],
  ["naïve 😀 a", "naïve 😀 b"],
];

/** Texts of a few words and lines, the same in every run. */
function* someTexts(): Generator<string> {
  const words = ["a", "b", " ", "\n", "total", "(", ")", "    "];
  let state = 7;
  const next = (bound: number) => (state = (state * 48_271) % 2_147_483_647) % bound;
  for (let number = 0; number < 400; number++) {
    yield Array.from({ length: next(14) }, () => words[next(words.length)]).join("");
  }
}

test("the pieces of two texts turn one into the other", () => {
  for (const [old, text] of DIFFERENT) assert.equal(apply(old, pieces(old, text)), text);
  const texts = [...someTexts()];
  for (const [index, old] of texts.entries()) {
    const text = texts[(index + 1) % texts.length] ?? "";
    assert.equal(apply(old, pieces(old, text)), text, JSON.stringify([old, text]));
  }
});

test("pieces are in order and do not overlap", () => {
  const texts = [...someTexts()];
  for (const [index, old] of texts.entries()) {
    let at = 0;
    for (const piece of pieces(old, texts.at(-1 - index) ?? "")) {
      assert.ok(piece.start >= at && piece.end >= piece.start && piece.end <= old.length);
      at = piece.end;
    }
  }
});

test("a renamed word is one piece", () => {
  assert.deepEqual(pieces("    return count + 1", "    return total + 1"), [{ start: 11, end: 16, text: "total" }]);
});

test("what is inserted into a line removes nothing", () => {
  assert.deepEqual(pieces("f(a)", "f(a, b=1)"), [{ start: 3, end: 3, text: ", b=1" }]);
});

test("an inserted line is a piece with its line break", () => {
  assert.deepEqual(pieces("    a\n    b", "    a\n    new\n    b"), [{ start: 6, end: 6, text: "    new\n" }]);
  assert.deepEqual(pieces("a", "a\nb"), [{ start: 1, end: 1, text: "\nb" }]);
});

test("a removed line is a piece with its line break", () => {
  assert.deepEqual(pieces("a\nb\nc", "a\nc"), [{ start: 2, end: 4, text: "" }]);
});

test("a line of which little stays is one piece behind its indentation", () => {
  assert.deepEqual(pieces("    x.then(y => z(y), e)", "    const q = await w(1, 2)"), [
    { start: 4, end: 23, text: "const q = await w(1, 2" },
  ]);
});

test("equal texts have no pieces", () => {
  assert.deepEqual(pieces("a\nb", "a\nb"), []);
});

test("very long texts are compared in bounded time, as one piece", () => {
  const lines = (word: string) => Array.from({ length: 2_000 }, (_, index) => `${word} ${index.toFixed()}`).join("\n");
  assert.equal(pieces(lines("a"), lines("b") + "\nc").length, 1);
});
