import assert from "node:assert/strict";
import { test } from "node:test";
import { goesOn, restOf, textOf } from "../src/marked";

test("an item's text is its own, or a snippet's source", () => {
  assert.equal(textOf({ insertText: "a + b" }), "a + b");
  assert.equal(textOf({ insertText: { value: "f($1)" } }), "f($1)");
});

test("a mark stays while the beginning of its text is typed", () => {
  assert.equal(restOf("value(1)", ""), "value(1)");
  assert.equal(restOf("value(1)", "va"), "lue(1)");
  assert.equal(restOf("value(1)", "vo"), undefined);
  assert.equal(restOf("value(1)", "value(1)"), undefined);
});

test("a text that was shown stays in sight while it is typed, and the next one does not", () => {
  assert.ok(goesOn("value(1)", "lue(1)"));
  assert.ok(!goesOn("value(1)", "return x"));
  assert.ok(!goesOn("value(1)", ""));
  assert.ok(!goesOn("", "value(1)"));
});
