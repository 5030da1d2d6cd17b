import assert from "node:assert/strict";
import { test } from "node:test";
import { answerTo, share } from "../src/offer";

test("each button has its answer, and closing the question means not now", () => {
  assert.deepEqual(["Download", "Not Now", "Never", undefined].map(answerTo), ["yes", "notNow", "never", "notNow"]);
});

test("the status bar shows how far a download is, and nothing for other messages", () => {
  assert.equal(share("downloading Qwen2.5-Coder 0.5B: 34 %"), " 34 %");
  assert.equal(share("loading the model"), "");
});
