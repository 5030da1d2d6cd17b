import assert from "node:assert/strict";
import { test } from "node:test";
import { isIn, type Place } from "../src/nextedit/place";
import { directionFrom, pointed } from "../src/nextedit/tab";

const PLACE: Place = { textDocument: { uri: "file:///a%20b.py", version: 3 }, position: { line: 41, character: 4 } };

function document(uri: string, version: number, lineCount = 100) {
  return { uri, version, lineCount, lineAt: () => ({ text: "" }) };
}

test("a place is in the version of the document that it was found in, and in no other", () => {
  assert.equal(isIn(PLACE, document("file:///a%20b.py", 3)), true);
  assert.equal(isIn(PLACE, document("file:///a%20b.py", 4)), false);
  assert.equal(isIn(PLACE, document("file:///c.py", 3)), false);
  assert.equal(isIn(PLACE, document("file:///a%20b.py", 3, 41)), false);
});

test("a place in view is seen from the cursor", () => {
  assert.equal(directionFrom(12, 41, [[10, 50]]), "below");
  assert.equal(directionFrom(48, 20, [[10, 50]]), "above");
});

test("a place is seen from the lines in view if the cursor is not among them", () => {
  assert.equal(directionFrom(12, 41, [[60, 90]]), "above");
  assert.equal(directionFrom(95, 41, [[0, 30]]), "below");
  assert.equal(directionFrom(95, 41, [[30, 60]]), "here");
});

test("a place is named by its line, and in another file by that file too", () => {
  assert.equal(pointed("below", PLACE.textDocument.uri, 41), "↓ line 42");
  assert.equal(pointed("above", PLACE.textDocument.uri, 41), "↑ line 42");
  assert.equal(pointed("elsewhere", PLACE.textDocument.uri, 41), "→ a b.py, line 42");
  assert.equal(pointed("here", PLACE.textDocument.uri, 41), "");
});
