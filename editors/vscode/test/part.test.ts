import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, pieces } from "../src/nextedit/diff";
import { part, type Amount } from "../src/nextedit/part";

/** What a text is after each partial acceptance, until it is the new one. */
function steps(old: string, text: string, amount: Amount): string[] {
  const made = [];
  for (let at = old; at !== text && made.length < 20; made.push(at)) at = apply(at, part(at, pieces(at, text), amount));
  return made;
}

test("word by word an edit comes in from its start", () => {
  assert.deepEqual(steps("f(a)", "f(a, b = 1)", "word"), ["f(a,)", "f(a, b)", "f(a, b =)", "f(a, b = 1)"]);
});

test("the first word takes away what it replaces", () => {
  assert.deepEqual(steps("return old_name", "return new name", "word"), ["return new", "return new name"]);
});

test("line by line an edit comes in from its start", () => {
  assert.deepEqual(steps("a\nz", "a\nb\nc\nz", "line"), ["a\nb\nz", "a\nb\nc\nz"]);
  assert.deepEqual(steps("a", "a\nb\nc", "line"), ["a\nb", "a\nb\nc"]);
});

test("a line takes all changes of the first changed line and leaves the others", () => {
  assert.deepEqual(steps("f(a, b)\ng(a)", "f(x, b, y)\ng(x)", "line"), ["f(x, b, y)\ng(a)", "f(x, b, y)\ng(x)"]);
});

test("what only removes is taken at once", () => {
  assert.deepEqual(steps("f(a, b, c)", "f(a)", "word"), ["f(a)"]);
  assert.deepEqual(part("a", [], "word"), []);
});

test("every edit is finished in parts", () => {
  const texts = ["", "a", "a\n", "\na", "a b\nc", "f(\n  x,\n  y\n)", "a\n\n\nb", "  a", "\n\n"];
  for (const amount of ["word", "line"] as const) {
    for (const old of texts) for (const text of texts) if (old !== text) assert.equal(steps(old, text, amount).at(-1), text);
  }
});
