import assert from "node:assert/strict";
import { test } from "node:test";
import { Following } from "../src/nextedit/following";

/** A question, and what answers it. */
function question() {
  let answer: () => void = () => undefined;
  const asking = new Promise<void>((resolve) => (answer = resolve));
  return { asking, answer };
}

test("keys pressed before the answer wait for it, in their order", async () => {
  const following = new Following();
  const { asking, answer } = question();
  const done: string[] = [];
  following.begin(asking, () => done.push("drawn"));
  const keys = ["first", "second"].map(async (key) => {
    if (await following.settled()) done.push(key);
  });
  await Promise.resolve();
  assert.deepEqual(done, []);
  answer();
  await Promise.all(keys);
  assert.deepEqual(done, ["drawn", "first", "second"]);
});

test("without a question no key waits", async () => {
  const following = new Following();
  assert.equal(await following.settled(), false);
  following.begin(Promise.resolve(), () => undefined);
  await following.settled();
  assert.equal(await following.settled(), false);
});

test("a key that waited is dropped when the text changed meanwhile", async () => {
  const following = new Following();
  const { asking, answer } = question();
  following.begin(asking, () => assert.fail("it was ended before"));
  const key = following.settled();
  following.end();
  answer();
  assert.equal(await key, false);
});

test("no key waits for a server that does not answer, or fails", async () => {
  const following = new Following(1);
  following.begin(new Promise(() => undefined), () => undefined);
  assert.equal(await following.settled(), true);
  following.begin(Promise.reject(new Error("the server is gone")), () => undefined);
  assert.equal(await following.settled(), true);
});
