import assert from "node:assert/strict";
import { test } from "node:test";
import { changedLines, endOf, fits, pending, placeAt, rest, type Answer } from "../src/nextedit/pending";

const document = (text: string, version = 3, uri = "file:///a.py") => {
  const lines = text.split("\n");
  return { uri, version, lineCount: lines.length, lineAt: (line: number) => ({ text: lines[line] ?? "" }) };
};

const TEXT = "def f(total):\n    x = count\n    return count";

function answer(start: readonly [number, number], end: readonly [number, number], text: string): Answer {
  const place = ([line, character]: readonly [number, number]) => ({ line, character });
  return {
    text,
    range: { start: place(start), end: place(end) },
    textDocument: { uri: "file:///a.py", version: 3 },
    command: { arguments: ["id"] },
  };
}

function renamed() {
  const edit = pending(answer([1, 8], [1, 13], "total"), document(TEXT));
  assert.ok(edit);
  return edit;
}

test("an edit fits only the version and the text that it was made for", () => {
  const edit = renamed();
  assert.ok(fits(edit, document(TEXT)));
  assert.ok(!fits(edit, document(TEXT, 3, "file:///b.py")));
  assert.ok(!fits(edit, document(TEXT, 4)));
  assert.ok(!fits(edit, document(TEXT.replace("x = count", "x = other"))));
  assert.ok(!fits(edit, document("def f(total):")));
});

test("an edit beyond the document, or one that changes nothing, is none", () => {
  assert.equal(pending(answer([1, 0], [9, 0], "x"), document(TEXT)), undefined);
  assert.equal(pending(answer([1, 8], [1, 13], "count"), document(TEXT)), undefined);
});

test("an edit of another document or version is none", () => {
  const edit = answer([1, 8], [1, 13], "total");
  assert.ok(pending(edit, document(TEXT)));
  assert.equal(pending(edit, document(TEXT, 4)), undefined);
  assert.equal(pending(edit, document(TEXT, 3, "file:///b.py")), undefined);
});

test("an edit that comes with its whole line changes one word", () => {
  const edit = pending(answer([1, 0], [1, 13], "    x = total"), document(TEXT));
  assert.deepEqual(edit?.pieces, [{ start: 8, end: 13, text: "total" }]);
});

test("the cursor comes behind what was made", () => {
  const edit = renamed();
  assert.deepEqual(placeAt(edit, edit.pieces[0]?.start ?? 0), { line: 1, character: 8 });
  assert.deepEqual(endOf(edit, edit.pieces), { line: 1, character: 13 });
  const lines = pending(answer([1, 0], [1, 0], "    a = 1\n"), document(TEXT));
  assert.ok(lines);
  assert.deepEqual(endOf(lines, lines.pieces), { line: 1, character: 9 });
  assert.deepEqual(changedLines(lines), [1, 1]);
});

test("what is left of an edit is for the text with its first part", () => {
  const edit = pending(answer([1, 8], [2, 16], "total\n    return total"), document(TEXT));
  assert.ok(edit);
  const left = rest(edit, edit.pieces.slice(0, 1), 4);
  assert.ok(left);
  assert.deepEqual(changedLines(left), [2, 2]);
  assert.ok(fits(left, document(TEXT.replace("x = count", "x = total"), 4)));
  assert.ok(!fits(left, document(TEXT, 4)));
  assert.equal(rest(edit, edit.pieces, 4), undefined);
});

test("line endings of either kind are the same text", () => {
  const edit = pending(answer([1, 13], [1, 13], "\r\n    y = 1"), document(TEXT));
  assert.equal(edit?.text, "    x = count\n    y = 1");
});
